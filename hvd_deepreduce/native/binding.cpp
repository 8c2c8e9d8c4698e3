#include "binding.hpp"

PYBIND11_MODULE(_native, module) {
    module.doc() = "The C++ kernels; what they promise stands in _native.pyi.";
    deepreduce::binding::bind_dense(module);
    deepreduce::binding::bind_index_codecs(module);
    deepreduce::binding::bind_bloom(module);
    deepreduce::binding::bind_value_codecs(module);
    deepreduce::binding::bind_quantizers(module);
    deepreduce::binding::bind_quant(module);
    deepreduce::binding::bind_curves(module);
    deepreduce::binding::bind_frames(module);
    deepreduce::binding::bind_stages(module);
}
