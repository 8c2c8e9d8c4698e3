# The GPU image: Debian 12 with NVIDIA's CUDA toolkit, PyTorch for CUDA, and Horovod whose GPU operations are NCCL's.
#
#     docker build -f docker/gpu.Dockerfile -t hvd_deepreduce:gpu .
#     docker run --rm --gpus all --shm-size 1g hvd_deepreduce:gpu horovodrun --check-build
#
# NCCL is the one that PyTorch brings along: two versions in one process would be one too many. TensorFlow is left out, as
# its 2.15 needs another CUDA than PyTorch 2.13.
ARG BASE=docker.io/library/debian:12-slim
ARG CUDA=docker.io/nvidia/cuda:13.0.1-devel-ubuntu22.04

FROM ${CUDA} AS cuda

FROM ${BASE} AS packages
COPY docker/debian-run.txt /tmp/
RUN apt-get -q update \
 && DEBIAN_FRONTEND=noninteractive xargs -a /tmp/debian-run.txt apt-get -q install -y --no-install-recommends \
 && apt-get clean \
 && rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log /etc/ssh/ssh_host_* /tmp/*

FROM packages AS frameworks
ARG MAKE_JOBS
COPY docker/debian-build.txt /tmp/
RUN apt-get -q update \
 && DEBIAN_FRONTEND=noninteractive xargs -a /tmp/debian-build.txt apt-get -q install -y --no-install-recommends
COPY docker/lock.txt docker/requirements-*.txt /src/docker/
ENV PATH=/opt/hvd_deepreduce/bin:/usr/local/bin:/usr/bin:/bin
# PyTorch's build for CUDA is the one that pip takes by itself; with its CUDA libraries, NCCL's among them.
RUN python3.11 -m venv /opt/hvd_deepreduce \
 && grep -v tensorflow /src/docker/requirements-frameworks.txt >/tmp/frameworks.txt \
 && pip install -q --no-cache-dir -c /src/docker/lock.txt -r /tmp/frameworks.txt -r /src/docker/requirements-tools.txt
# The linker looks for a name without a version.
RUN nccl=$(python -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])') \
 && ln -s libnccl.so.2 "$nccl/lib/libnccl.so" \
 && ln -s "$nccl" /opt/nccl

FROM frameworks AS build
COPY --from=cuda /usr/local/cuda /usr/local/cuda
COPY docker/cxx17 /src/docker/
# CUDA 13 compiles for Turing (75) and newer.
ARG CUDA_ARCHITECTURES=75,80,86,90,100
RUN pip install -q --no-cache-dir --target /tmp/setuptools "setuptools==69.5.1" \
 && CXX=/src/docker/cxx17 PYTHONPATH=/tmp/setuptools PATH="/usr/local/cuda/bin:$PATH" \
    HOROVOD_CUDA_HOME=/usr/local/cuda HOROVOD_BUILD_CUDA_CC_LIST="${CUDA_ARCHITECTURES}" \
    HOROVOD_GPU_OPERATIONS=NCCL HOROVOD_NCCL_HOME=/opt/nccl HOROVOD_NCCL_LINK=SHARED \
    HOROVOD_WITH_MPI=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1 \
    MAKEFLAGS="-j${MAKE_JOBS:-$(nproc)}" \
    pip wheel -q --no-build-isolation --no-cache-dir --no-deps -w /tmp/wheel horovod==0.28.1 \
 && pip install -q --no-cache-dir --no-deps /tmp/wheel/horovod-*.whl
COPY . /src
RUN cd /src \
 && pip wheel -q --no-build-isolation --no-cache-dir --no-deps -w /tmp/wheel . \
 && pip install -q --no-cache-dir --no-deps /tmp/wheel/hvd_deepreduce-*.whl \
 && rm -rf build *.egg-info torch/hvd_deepreduce \
 && find hvd_deepreduce tf/hvd_deepreduce/tf -mindepth 1 -maxdepth 1 -not -name native -exec rm -rf {} +

FROM packages
RUN useradd --create-home --uid 1000 --shell /bin/bash hvd
# The toolkit stays behind: what runs needs the CUDA libraries that came with PyTorch, and the driver of the host.
COPY --from=build /opt/hvd_deepreduce /opt/hvd_deepreduce
COPY --from=build --chown=hvd:hvd /src /home/hvd/hvd_deepreduce
COPY docker/smoke-test docker/worker docker/launcher docker/await-key /usr/local/bin/
ENV PATH=/opt/hvd_deepreduce/bin:/usr/local/bin:/usr/bin:/bin \
    VIRTUAL_ENV=/opt/hvd_deepreduce \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER hvd
WORKDIR /home/hvd/hvd_deepreduce
CMD ["smoke-test"]
