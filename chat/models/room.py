"""Rooms and who belongs to them. `Room.objects.visible_to(user)` is the one door for permission."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.contrib.auth.models import User as UserModel
from django.db import models, transaction
from django.utils import timezone

TITLE_CHARACTERS = 200


class RoomQuerySet(models.QuerySet["Room"]):
    """Rooms by who may do what in them."""

    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> RoomQuerySet:
        """The rooms this person may read."""
        return self._with_role(user, Membership.Role.values)

    def writable_by(self, user: AbstractBaseUser | AnonymousUser) -> RoomQuerySet:
        """The rooms in which this person may ask and stop."""
        return self._with_role(user, Membership.WRITING_ROLES)

    def owned_by(self, user: AbstractBaseUser | AnonymousUser) -> RoomQuerySet:
        """The rooms this person may rename, share and delete."""
        return self._with_role(user, [Membership.Role.OWNER])

    def overseen_by(self, user: UserModel) -> RoomQuerySet:
        """All rooms, for staff who may stop any reply; the admin's stop alone goes by this."""
        if user.is_active and user.is_staff and user.has_perm("chat.stop_inference"):
            return self.all()
        return self.none()

    def with_role(self) -> RoomQuerySet:
        """Behind one of the three above: each room with the person's own `role`."""
        return self.annotate(role=models.F("membership__role"))  # type: ignore[no-redef]  # declared for its readers

    def with_member_count(self) -> RoomQuerySet:
        """Each room with how many people are in it."""
        return self.annotate(member_count=models.Count("membership"))  # type: ignore[no-redef]  # as above

    def create_for(self, user: UserModel, *, title: str = "") -> Room:
        """A new room with this person as its owner."""
        with transaction.atomic():
            room = self.create(title=title[:TITLE_CHARACTERS])
            Membership.objects.create(room=room, user=user, role=Membership.Role.OWNER)
        return room

    def _with_role(self, user: AbstractBaseUser | AnonymousUser, roles: Sequence[str]) -> RoomQuerySet:
        if not user.is_authenticated or not user.is_active:
            return self.none()
        # In one filter: chained ones would ask for the person's membership and, apart from it, for anybody's role.
        return self.filter(membership__user=user.pk, membership__role__in=roles)


class Room(models.Model):
    """A conversation: a tree of messages, of which a page shows one path."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    title = models.CharField(max_length=TITLE_CHARACTERS, blank=True, default="")
    model = models.CharField(max_length=200, blank=True, default="")
    system_prompt = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, through="Membership", related_name="rooms")

    role: str
    """Of the person who looks; only where `with_role` has read it."""
    member_count: int
    """Only where `with_member_count` has read it."""

    objects = RoomQuerySet.as_manager()

    class Meta:
        ordering = ("-updated_at",)
        indexes = (models.Index(fields=["-updated_at"], name="room_by_update"),)

    def __str__(self) -> str:
        return self.title or f"Room {self.pk}"

    @property
    def topic(self) -> str:
        """The channel-layer group that is told what happens in this room."""
        return f"room.{self.pk}"


class Membership(models.Model):
    """What one person may do in one room."""

    class Role(models.TextChoices):
        OWNER = "owner"
        WRITER = "writer"
        READER = "reader"

    WRITING_ROLES = (Role.OWNER, Role.WRITER)

    room = models.ForeignKey(Room, on_delete=models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    role = models.CharField(max_length=10, choices=Role.choices)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["room", "user"], name="one_membership_per_person"),
            models.CheckConstraint(
                condition=models.Q(role__in=["owner", "writer", "reader"]), name="membership_role_is_known"
            ),
        )

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.room}"
