"""The Kubernetes base agrees with itself, with the settings and with how long a worker takes to end."""

from __future__ import annotations

from typing import Any

import yaml

from testing.services import PROJECT, site_variables

FOLDER = PROJECT / "deploy" / "k8s"
KUSTOMIZATION: dict[str, Any] = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
OBJECTS: dict[str, dict[str, Any]] = {
    item["kind"]: item for item in (yaml.safe_load((FOLDER / name).read_text()) for name in KUSTOMIZATION["resources"])
}
DEPLOYMENT = OBJECTS["Deployment"]["spec"]
POD = DEPLOYMENT["template"]["spec"]
(WEB,) = POD["containers"]
(MIGRATE,) = POD["initContainers"]
SAVE_ON_EXIT_SECONDS = 10


def test_every_file_of_the_folder_is_part_of_the_base() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {*KUSTOMIZATION["resources"], "kustomization.yaml"}


def test_a_pod_gets_longer_to_end_than_it_needs() -> None:
    pause = int(WEB["lifecycle"]["preStop"]["exec"]["command"][1])
    drain = int(OBJECTS["ConfigMap"]["data"]["DRAIN_SECONDS"])
    assert POD["terminationGracePeriodSeconds"] >= pause + drain + SAVE_ON_EXIT_SECONDS


def test_an_update_takes_no_pod_away_before_another_is_ready() -> None:
    assert DEPLOYMENT["replicas"] == 3
    assert DEPLOYMENT["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert WEB["startupProbe"]["httpGet"]["path"] == "/readyz"


def test_an_outage_of_redis_takes_no_pod_out_of_the_service() -> None:
    assert WEB["readinessProbe"]["httpGet"]["path"] == WEB["livenessProbe"]["httpGet"]["path"] == "/healthz"


def test_health_is_asked_for_under_a_name_that_is_always_allowed() -> None:
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert WEB[probe]["httpGet"]["httpHeaders"] == [{"name": "Host", "value": "localhost"}]


def test_nothing_runs_with_rights_and_nothing_can_be_written_but_two_folders() -> None:
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert POD["automountServiceAccountToken"] is False
    for container in (WEB, MIGRATE):
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] and not context["allowPrivilegeEscalation"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/data", "/tmp"]  # noqa: S108
    assert all("emptyDir" in volume for volume in POD["volumes"])


def test_every_container_says_what_it_needs_and_how_much_it_may_have() -> None:
    for container in (WEB, MIGRATE):
        assert set(container["resources"]) == {"requests", "limits"}


def test_no_secret_stands_in_the_base() -> None:
    assert "Secret" not in OBJECTS
    assert {"secretRef": {"name": "chatsite"}} in WEB["envFrom"]
    secret = {name for name in site_variables() if name.endswith(("_KEY", "PASSWORD", "TOKEN"))}
    assert "SECRET_KEY" in secret
    assert not secret & OBJECTS["ConfigMap"]["data"].keys()


def test_the_base_sets_only_variables_that_the_settings_read() -> None:
    assert OBJECTS["ConfigMap"]["data"].keys() <= site_variables()


def test_everything_that_selects_pods_selects_these() -> None:
    labels = DEPLOYMENT["template"]["metadata"]["labels"]
    selectors = [
        DEPLOYMENT["selector"]["matchLabels"],
        OBJECTS["Service"]["spec"]["selector"],
        OBJECTS["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
    ]
    assert all(selector == labels for selector in selectors)


def test_the_ingress_buffers_nothing_and_lets_a_socket_be_quiet() -> None:
    annotations = OBJECTS["Ingress"]["metadata"]["annotations"]
    said = {name.removeprefix("nginx.ingress.kubernetes.io/"): value for name, value in annotations.items()}
    assert said["proxy-buffering"] == "off"
    assert said["proxy-read-timeout"] == said["proxy-send-timeout"] == "3600"
