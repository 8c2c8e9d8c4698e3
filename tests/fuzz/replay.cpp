// Runs a fuzz target without libFuzzer: `TARGET RUNS CRASH FOLDER...` replays all files of the folders and then a fixed
// sequence of RUNS mutations of them. An input that ends the run is left in the file CRASH.
#include <sanitizer/common_interface_defs.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "input.hpp"

namespace {

using Sample = std::vector<std::uint8_t>;

constexpr std::size_t kMaxSize = 4096;

const char* crash_path = nullptr;
const Sample* running = nullptr;

void write_running() {
    if (running == nullptr) {
        return;
    }
    std::ofstream file(crash_path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(running->data()), static_cast<std::streamsize>(running->size()));
    std::cerr << "the input is in " << crash_path << "\n";
}

void run(const Sample& sample) {
    running = &sample;
    const deepreduce::fuzz::Exact<std::uint8_t> exact({sample.data(), sample.size()});
    LLVMFuzzerTestOneInput(exact.view().data, exact.size());
    running = nullptr;
}

void read_folder(const std::filesystem::path& folder, std::vector<Sample>& samples) {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        paths.push_back(entry.path());
    }
    // The order of a folder is that of the file system.
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) {
        std::ifstream file(path, std::ios::binary);
        samples.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
}

class Mutator {
  public:
    explicit Mutator(const std::vector<Sample>& samples) : samples_(samples) {}

    Sample next() {
        Sample sample = any();
        for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
            edit(sample);
        }
        sample.resize(std::min(sample.size(), kMaxSize));
        return sample;
    }

  private:
    /// Distributions of the standard library differ between versions of it.
    std::size_t below(std::size_t limit) { return limit == 0 ? 0 : generator_() % limit; }

    const Sample& any() { return samples_[below(samples_.size())]; }

    void edit(Sample& sample) {
        constexpr std::uint8_t kEdges[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
        const std::size_t place = below(sample.size());
        const auto at = sample.begin() + static_cast<std::ptrdiff_t>(place);
        const auto until = at + static_cast<std::ptrdiff_t>(below(std::min<std::size_t>(sample.size() - place, 16)));
        const std::size_t kind = sample.empty() ? 3 : below(6);
        if (kind == 0) {
            *at = static_cast<std::uint8_t>(*at ^ 1u << below(8));
        } else if (kind == 1) {
            *at = kEdges[below(std::size(kEdges))];
        } else if (kind == 2) {
            *at = static_cast<std::uint8_t>(*at + below(33) - 16);
        } else if (kind == 3) {
            sample.insert(at, 1 + below(8), static_cast<std::uint8_t>(below(256)));
        } else if (kind == 4) {
            sample.erase(at, until);
        } else {
            const Sample& other = any();
            const auto start = static_cast<std::ptrdiff_t>(below(other.size()));
            sample.erase(at, sample.end());
            sample.insert(sample.end(), other.begin() + start, other.end());
        }
    }

    const std::vector<Sample>& samples_;
    std::mt19937_64 generator_{20240607};
};

}  // namespace

/// A count from the wire that is believed too early shows as a refused allocation.
extern "C" const char* __asan_default_options() { return "handle_abort=1:max_allocation_size_mb=64"; }

int main(int count, char** arguments) {
    if (count < 4) {
        std::cerr << "usage: TARGET RUNS CRASH FOLDER...\n";
        return 2;
    }
    crash_path = arguments[2];
    __sanitizer_set_death_callback(write_running);
    std::vector<Sample> samples(1);
    for (int i = 3; i < count; ++i) {
        read_folder(arguments[i], samples);
    }
    for (const Sample& sample : samples) {
        run(sample);
    }
    const unsigned long runs = std::stoul(arguments[1]);
    Mutator mutator(samples);
    for (unsigned long i = 0; i < runs; ++i) {
        run(mutator.next());
    }
    std::cout << std::filesystem::path(arguments[0]).filename().string() << ": " << samples.size() << " inputs, "
              << runs << " mutations\n";
    return 0;
}
