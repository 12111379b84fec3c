# `treetop serve` in a container. docs/deploy.md says how to build, run and update it.
#
#   docker build -t treetop .                                    models without an encoder
#   docker build -t treetop --build-arg EXTRAS=serve,minilm .    models with an encoder, on the CPU
#   docker build -t treetop --build-arg EXTRAS=serve,minilm \
#                --build-arg TORCH_INDEX=https://pypi.org/simple .    … and on a GPU
#
# tests/test_dockerfile.py runs the steps of this file.
ARG PYTHON=3.11

FROM python:${PYTHON}-slim AS base
# The oldest processor that kernels run on. x86-64-v3 has AVX2, as most since 2013 (Intel) or 2015 (AMD).
# Use `generic` for older processors and for ARM.
ARG CPU=x86-64-v3
ENV PATH=/opt/treetop/bin:$PATH \
    NUMBA_CACHE_DIR=/opt/treetop/kernels \
    NUMBA_CPU_NAME=${CPU} \
    NUMBA_CPU_FEATURES=""

FROM base AS build
ARG EXTRAS=serve
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
WORKDIR /build
RUN python -m venv /opt/treetop
COPY constraints.txt ./
# In its own layer, and from an index whose build of torch has no CUDA: 4 GB less.
RUN case ",$EXTRAS," in \
        *,minilm,*|*,transformer,*|*,all,*) \
            pip install --index-url "$TORCH_INDEX" -c constraints.txt torch ;; \
    esac
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip install -c constraints.txt ".[$EXTRAS]"
RUN treetop warm-up

FROM base
# Libraries ask for the name and the home of the user; the only folder they may write to is /tmp.
RUN echo "treetop:x:10001:10001::/tmp:/usr/sbin/nologin" >> /etc/passwd
ENV HOME=/tmp
COPY --from=build /opt/treetop /opt/treetop
WORKDIR /tmp
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
ENTRYPOINT ["treetop"]
CMD ["serve", "/models/model", "--host", "0.0.0.0"]
