"""All paths of the site."""

from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import include, path
from django.views.i18n import set_language

from chat import api
from chat.pages import accounts, members, room, rooms, theme, tokens
from chatsite.health import healthz, readyz

handler500 = "chatsite.outages.fault"
urlpatterns = [
    path("", rooms.home, name="home"),
    path("accounts/signup/", accounts.SignUp.as_view(), name="signup"),
    path("accounts/invited/<str:secret>/", accounts.SignUp.as_view(), name="invited"),
    path("accounts/login/", accounts.LogIn.as_view(), name="login"),
    path("accounts/logout/", LogoutView.as_view(), name="logout"),
    path("accounts/", accounts.account, name="account"),
    path("accounts/email/", accounts.change_email, name="account_email"),
    path("accounts/password/", accounts.ChangePassword.as_view(), name="password_change"),
    path("accounts/password/reset/", accounts.AskForReset.as_view(), name="password_reset"),
    path("accounts/password/reset/<uidb64>/<token>/", accounts.Reset.as_view(), name="password_reset_confirm"),
    path("accounts/everywhere/", accounts.sign_out_everywhere, name="sign_out_everywhere"),
    path("accounts/tokens/", tokens.tokens, name="tokens"),
    path("accounts/tokens/<int:token_id>/revoke/", tokens.revoke_token, name="token_revoke"),
    path("rooms/", rooms.RoomList.as_view(), name="room_list"),
    path("rooms/found/", rooms.found, name="rooms_found"),
    path("rooms/models/", rooms.models, name="models"),
    path("rooms/<uuid:room_id>/", room.RoomPage.as_view(), name="room"),
    path("rooms/<uuid:room_id>/earlier/", room.EarlierMessages.as_view(), name="room_earlier"),
    path("rooms/<uuid:room_id>/export.md", room.export_markdown, name="room_markdown"),
    path("rooms/<uuid:room_id>/export.json", room.export_json, name="room_json"),
    path("rooms/<uuid:room_id>/change/", rooms.change_room, name="room_change"),
    path("rooms/<uuid:room_id>/members/", members.MembersPage.as_view(), name="room_members"),
    path("rooms/<uuid:room_id>/members/add/", members.add_member, name="member_add"),
    path("rooms/<uuid:room_id>/members/<int:member_id>/change/", members.change_member, name="member_change"),
    path("rooms/<uuid:room_id>/members/<int:member_id>/remove/", members.remove_member, name="member_remove"),
    path("rooms/<uuid:room_id>/delete/", rooms.RoomDelete.as_view(), name="room_delete"),
    path("theme/", theme.theme, name="theme"),
    path("language/", set_language, name="set_language"),
    path("api/v1/", include((api.paths(), "api"))),
    path("api/<path:rest>", api.no_such_path),
    path("admin/", admin.site.urls),
    path("healthz", healthz),
    path("readyz", readyz),
]
