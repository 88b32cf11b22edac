ARG PYTHON_VERSION=3.13

FROM docker.io/library/python:${PYTHON_VERSION}-slim AS build
WORKDIR /app
RUN python -m venv /venv
COPY requirements.txt ./
# hadolint ignore=DL3042
RUN --mount=type=cache,target=/root/.cache/pip \
    /venv/bin/python -m pip install --disable-pip-version-check -r requirements.txt
COPY . .
# Neither step reads a secret or a database; the values last for these commands only.
RUN if [ -d locale ]; then /venv/bin/pybabel -q compile -d locale -D django; fi \
    && ENV_FILE='' DATA_DIR=/tmp SECRET_KEY=only-for-the-build DATABASE_URL=sqlite://:memory: \
       /venv/bin/python manage.py collectstatic --noinput --verbosity 0 \
    && /venv/bin/python -m compileall -q chatsite chat inference

FROM docker.io/library/python:${PYTHON_VERSION}-slim
# The site runs as a user who may write to /data only.
COPY --from=build /venv /venv
COPY --from=build /app /app
RUN install -d -o 10001 -g 10001 -m 750 /data
WORKDIR /app
# The heap in huge pages: less processor time, by half with few live replies (docs/BENCHMARKS.md).
ENV PYTHONMALLOC=malloc \
    GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1
# hadolint ignore=DL3064  # SECRET_KEY_FILE names a file; the secret is made at the first start
ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    DATA_DIR=/data \
    SECRET_KEY_FILE=/data/secret_key
USER 10001:10001
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
CMD ["python", "manage.py", "serve", "--migrate", "--host", "0.0.0.0", "--port", "8000"]
