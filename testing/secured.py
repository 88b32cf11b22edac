"""Redis and PostgreSQL as people run them: with a password, and reached only by TLS whose certificate is checked."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import redis

from testing.server_process import work_folder
from testing.services import PostgresServer, RedisServer

PASSWORD = "p@ss/word:1"
QUOTED = "p%40ss%2Fword%3A1"
HOSTSSL = "hostssl all all 127.0.0.1/32 scram-sha-256\n"


class SecuredRedis(RedisServer):
    """Speaks TLS only and wants a password."""

    name = "secured-redis"

    @property
    def url(self) -> str:
        return f"rediss://:{QUOTED}@127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        certificate, key = certificate_of("127.0.0.1")
        tls = f"--port 0 --tls-port {self.port} --tls-cert-file {certificate} --tls-key-file {key}"
        others = f"--tls-ca-cert-file {certificate} --tls-auth-clients no --requirepass {PASSWORD}"
        return [*super().command(), *tls.split(), *others.split()]

    def client(self, *, timeout_seconds: float = 5.0) -> redis.Redis:
        certificate, _ = certificate_of("127.0.0.1")
        return redis.Redis.from_url(self.url, ssl_ca_certs=str(certificate), socket_timeout=timeout_seconds)


class SecuredPostgres(PostgresServer):
    """Lets nobody in without TLS and a password."""

    name = "secured-postgres"

    def database_url(self, database: str) -> str:
        certificate, _ = certificate_of("127.0.0.1")
        tls = f"sslmode=verify-full&sslrootcert={certificate}"
        return f"postgres://chatsite:{QUOTED}@127.0.0.1:{self.port}/{database}?{tls}"

    def options(self) -> list[str]:
        own = [f"ssl_cert_file={self.folder / 'cert.pem'}", f"ssl_key_file={self.folder / 'key.pem'}"]
        return [*super().options(), "ssl=on", *own]

    def authentication(self) -> list[str]:
        for source, name in zip(certificate_of("127.0.0.1"), ("cert.pem", "key.pem"), strict=True):
            self._own_file(name, source.read_text())
        return ["--auth=scram-sha-256", f"--pwfile={self._own_file('password', PASSWORD)}"]

    def launch(self) -> None:
        if not self.data.exists():
            self._init_cluster()
            (self.data / "pg_hba.conf").write_text(HOSTSSL)
        super().launch()

    def _own_file(self, name: str, text: str) -> Path:
        """PostgreSQL takes a key only from a file that nobody else can read."""
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_text(text)
        if self.run_as:
            os.chown(path, self.run_as.pw_uid, self.run_as.pw_gid)
        return path


@functools.cache
def certificate_of(address: str, subject: str = "the tests' own") -> tuple[Path, Path]:
    """A certificate of this IP address, which is also what it is checked against, and its key: two PEM files."""
    openssl = shutil.which("openssl")
    if not openssl:
        raise FileNotFoundError("openssl is not installed; `make test` installs it")
    folder = Path(tempfile.mkdtemp(prefix="certificate-", dir=work_folder()))
    paths = folder / "cert.pem", folder / "key.pem"
    kind = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", f"/CN={subject}", "-addext", f"subjectAltName=IP:{address}"]
    files = ["-out", str(paths[0]), "-keyout", str(paths[1])]
    subprocess.run([openssl, *kind, *names, *files], check=True, capture_output=True)
    return paths
