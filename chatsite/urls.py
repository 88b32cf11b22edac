"""All paths of the site."""

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from chat import api, pages
from chatsite.health import healthz, readyz

urlpatterns = [
    path("", pages.home, name="home"),
    path("accounts/signup/", pages.SignUp.as_view(), name="signup"),
    path("accounts/login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("accounts/logout/", LogoutView.as_view(), name="logout"),
    path("rooms/", pages.RoomList.as_view(), name="room_list"),
    path("rooms/<uuid:room_id>/", pages.RoomPage.as_view(), name="room"),
    path("rooms/<uuid:room_id>/delete/", pages.RoomDelete.as_view(), name="room_delete"),
    path("theme/", pages.theme, name="theme"),
    path("api/v1/inference/stop", api.stop_inference, name="api_stop"),
    path("admin/", admin.site.urls),
    path("healthz", healthz),
    path("readyz", readyz),
]
