# The CPU image: Debian 12, Open MPI, Horovod for PyTorch and TensorFlow, the project as a wheel, and its tests.
#
#     docker build -f docker/cpu.Dockerfile -t hvd_deepreduce:cpu .
#     docker run --rm hvd_deepreduce:cpu smoke-test
#
# Debian's packages are pinned to their upstream version, so that security updates pass; Python's exactly.
ARG BASE=docker.io/library/debian:12-slim

FROM ${BASE} AS packages
COPY docker/debian-run.txt /tmp/
RUN apt-get -q update \
 && DEBIAN_FRONTEND=noninteractive xargs -a /tmp/debian-run.txt apt-get -q install -y --no-install-recommends \
 && apt-get clean \
 # Keys of this image would be the keys of everybody.
 && rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log /etc/ssh/ssh_host_* /tmp/*

FROM packages AS build
# Where PyTorch's build without CUDA is; empty if pip finds it by itself.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ARG MAKE_JOBS
COPY docker/debian-build.txt /tmp/
RUN apt-get -q update \
 && DEBIAN_FRONTEND=noninteractive xargs -a /tmp/debian-build.txt apt-get -q install -y --no-install-recommends
COPY docker/setup.sh docker/cxx17 docker/lock.txt docker/requirements-*.txt /src/docker/
# The built Horovod stays in a cache mount, outside the image, for the next build.
RUN --mount=type=cache,target=/var/cache/hvd_deepreduce \
    HVD_DEEPREDUCE_CACHE=/var/cache/hvd_deepreduce PIP_NO_CACHE_DIR=1 PIP_EXTRA_INDEX_URL="${TORCH_INDEX}" \
    /src/docker/setup.sh --venv /opt/hvd_deepreduce --no-project
COPY . /src
RUN cd /src \
 && /opt/hvd_deepreduce/bin/python -m pip wheel -q --no-build-isolation --no-cache-dir --no-deps -w /tmp/wheel . \
 && /opt/hvd_deepreduce/bin/python -m pip install -q --no-cache-dir --no-deps /tmp/wheel/*.whl \
 && (cd / && /opt/hvd_deepreduce/bin/python -c \
     'from hvd_deepreduce.tf import native_library as ops; print("TensorFlow ops:", ops.compiled(ops.FOR_ALL))') \
 # Of the sources stays what tests and examples read, and nothing that could stand in for the installed package.
 && rm -rf /opt/hvd_deepreduce/setup-logs build *.egg-info torch/hvd_deepreduce \
 && find hvd_deepreduce tf/hvd_deepreduce/tf -mindepth 1 -maxdepth 1 -not -name native -exec rm -rf {} +

FROM packages
RUN useradd --create-home --uid 1000 --shell /bin/bash hvd
COPY --from=build /opt/hvd_deepreduce /opt/hvd_deepreduce
COPY --from=build --chown=hvd:hvd /src /home/hvd/hvd_deepreduce
COPY docker/smoke-test docker/worker docker/launcher docker/await-key /usr/local/bin/
ENV PATH=/opt/hvd_deepreduce/bin:/usr/local/bin:/usr/bin:/bin \
    VIRTUAL_ENV=/opt/hvd_deepreduce \
    TF_CPP_MIN_LOG_LEVEL=3
USER hvd
WORKDIR /home/hvd/hvd_deepreduce
CMD ["smoke-test"]
