// The parts of `hvd_deepreduce._native`; only files named binding* know Python.
#pragma once

#include <pybind11/pybind11.h>

namespace deepreduce::binding {

void bind_dense(pybind11::module_& module);
void bind_index_codecs(pybind11::module_& module);
void bind_bloom(pybind11::module_& module);
void bind_value_codecs(pybind11::module_& module);
void bind_quantizers(pybind11::module_& module);
void bind_quant(pybind11::module_& module);
void bind_curves(pybind11::module_& module);
void bind_frames(pybind11::module_& module);
void bind_stages(pybind11::module_& module);

}  // namespace deepreduce::binding
