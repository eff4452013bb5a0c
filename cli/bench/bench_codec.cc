// `sotto bench codec`: how fast each compressor is, as a fraction of what the memory allows.
#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/compress/cuda/codec.h>
#include <sotto/compress/registry.h>
#include <sotto/console/option_group.h>
#include <sotto/console/output.h>
#include <sotto/kernels/ops.h>
#include <sotto/study/measure/codec_timing.h>

#include "commands.h"
#include "device_timing.h"

namespace sotto::cli {
namespace {

constexpr const char* kBenchCodecExamples =
    "Examples:\n"
    "  sotto bench codec\n"
    "  sotto bench codec --threads 2\n"
    "  sotto bench codec --device cuda --elements 268435456\n"
    "  sotto bench codec --compressor quant:4 --compressor sign --elements 1048576 --json -";

/// Beside the examples of the registry.
constexpr const char* kMoreCompressors[] = {"quant:4", "quant:2", "quant:1", "topk:0.01",
                                            "topk:0.01,values=2"};
constexpr std::size_t kMostElements = std::size_t{1} << 30;
constexpr std::uint64_t kMostRepeats = 1'000'000;
constexpr const char* kHost = "host";
constexpr const char* kCuda = "cuda";

struct BenchCodecRequest {
  console::CommonOptions common;
  std::vector<std::string> compressors;
  std::size_t elements = std::size_t{1} << 24;
  int repeats = 5;
  int threads = 1;
  std::string device = kHost;
};

struct Row {
  std::string compressor;
  const char* operation;
  double bytes;  ///< that must move
  study::Elapsed seconds;
  double speedup;  ///< over one thread

  double gbs() const { return gbs_in(seconds.fastest); }
  /// Where a call takes so long.
  double gbs_in(double call_s) const { return 1e-9 * bytes / call_s; }
};

/// What one run of a codec has measured.
struct CodecMeasurement {
  std::string device;
  double limit = 0;
  std::vector<Row> rows{};
};

/// The threads that work, and the clock that goes with them.
struct Crew {
  explicit Crew(int threads)
      : workers(threads == 1 ? nullptr : std::make_shared<Workers>(threads)),
        clock(threads == 1 ? study::Clock::processor : study::Clock::elapsed) {}

  std::shared_ptr<Workers> workers;  ///< null: one thread
  study::Clock clock;
};

void copy_together(Workers& workers, std::span<const float> from, std::span<float> to) {
  const auto parts = static_cast<std::size_t>(workers.threads());
  workers.run(parts, [&](std::size_t k) {
    const std::size_t first = from.size() * k / parts;
    const std::size_t count = from.size() * (k + 1) / parts - first;
    std::memcpy(&to[first], &from[first], count * sizeof(float));
  });
}

/// Billions of bytes a second, reads and writes both counted: the better of two ways to copy.
double copy_bandwidth(std::span<const float> from, std::span<float> to, int repeats,
                      const Crew& crew) {
  const auto bytes = from.size_bytes();
  const auto time = [&](const std::function<void()>& call) {
    return timed(repeats, call, crew.clock).fastest;
  };
  double seconds = std::min(time([&] { std::memcpy(to.data(), from.data(), bytes); }),
                            time([&] { host_ops().copy(from, to); }));
  if (crew.workers != nullptr) {
    seconds = std::min(seconds, time([&] { copy_together(*crew.workers, from, to); }));
  }
  return 2e-9 * static_cast<double>(bytes) / seconds;
}

/// Both operations of one compressor on `elements` elements, beside those of one thread.
std::vector<Row> rows_of(const study::CodecTiming& timing, const study::CodecTiming& alone,
                         std::size_t elements) {
  return {{timing.spec, "encode", timing.encode_bytes(elements), timing.encode,
           alone.encode.fastest / timing.encode.fastest},
          {timing.spec, "decode_mix", timing.decode_mix_bytes(elements), timing.decode_mix,
           alone.decode_mix.fastest / timing.decode_mix.fastest}};
}

CodecMeasurement measure_host(const std::vector<std::string>& specs,
                              const BenchCodecRequest& request) {
  const auto x = study::normal_values(request.elements, request.common.seed);
  FloatVector y(x.size(), 0.0F);
  CodecMeasurement measured{.device = std::string(host_ops().name())};
  const Crew crew(request.threads);
  const auto time = [&](const std::string& spec, const std::shared_ptr<Workers>& workers) {
    return time_codec(spec, x, y, request.common.seed, request.repeats, workers, crew.clock);
  };
  for (const std::string& spec : specs) {
    // Measured again and again, so that a moment's load on the machine lowers no limit.
    measured.limit = std::max(measured.limit, copy_bandwidth(x, y, request.repeats, crew));
    const study::CodecTiming alone = time(spec, nullptr);
    const study::CodecTiming timing = crew.workers == nullptr ? alone : time(spec, crew.workers);
    const auto rows = rows_of(timing, alone, request.elements);
    measured.rows.insert(measured.rows.end(), rows.begin(), rows.end());
  }
  return measured;
}

CodecMeasurement measure_device(const std::vector<std::string>& specs,
                                const BenchCodecRequest& request) {
  const DeviceTimings timings =
      time_on_device(specs, request.elements, request.common.seed, request.repeats);
  CodecMeasurement measured{.device = timings.device, .limit = timings.copy_bandwidth};
  for (const study::CodecTiming& timing : timings.codecs) {
    const auto rows = rows_of(timing, timing, request.elements);
    measured.rows.insert(measured.rows.end(), rows.begin(), rows.end());
  }
  return measured;
}

std::vector<std::string> chosen(const BenchCodecRequest& request) {
  if (!request.compressors.empty()) {
    return request.compressors;
  }
  std::vector<std::string> specs;
  for (const CompressorInfo& info : compressors()) {
    if (request.device == kHost || cuda::has_codec(info.name)) {
      specs.emplace_back(info.example);
    }
  }
  for (const char* more : kMoreCompressors) {
    const bool known = request.device == kHost || cuda::has_codec(family_name(more));
    if (known && std::find(specs.begin(), specs.end(), more) == specs.end()) {
      specs.emplace_back(more);
    }
  }
  return specs;
}

void print(const CodecMeasurement& measured, const BenchCodecRequest& request,
           const console::Output& output) {
  const int threads = request.threads;
  output.line(request.device == kHost
                  ? fmt::format("copying: {:.1f} GB/s, {} thread{}, {} kernels", measured.limit,
                                threads, threads == 1 ? "" : "s", measured.device)
                  : fmt::format("copying: {:.1f} GB/s on {}", measured.limit, measured.device));
  std::vector<std::string> head = {"compressor", "operation", "GB/s",
                                   "median",     "slowest",   "of copying"};
  if (threads > 1) {
    head.emplace_back("of one thread");
  }
  std::vector<std::vector<std::string>> cells;
  cells.reserve(measured.rows.size());
  for (const Row& row : measured.rows) {
    cells.push_back({row.compressor, row.operation, fmt::format("{:.2f}", row.gbs()),
                     fmt::format("{:.2f}", row.gbs_in(row.seconds.median)),
                     fmt::format("{:.2f}", row.gbs_in(row.seconds.slowest)),
                     fmt::format("{:.0f} %", 100 * row.gbs() / measured.limit)});
    if (threads > 1) {
      cells.back().push_back(fmt::format("{:.2f} x", row.speedup));
    }
  }
  output.table(head, cells);
}

void refuse_out_of_range(const BenchCodecRequest& request) {
  if (request.elements == 0 || request.elements > kMostElements) {
    refuse("elements", fmt::to_string(request.elements), "it must be 1 to 2^30");
  }
  if (request.repeats < 1) {
    refuse("repeats", fmt::to_string(request.repeats), "at least one is needed");
  }
  if (request.threads < 1 || request.threads > Workers::kMost) {
    refuse("threads", fmt::to_string(request.threads),
           fmt::format("1 to {} would do", Workers::kMost));
  }
  if (request.device != kHost && request.device != kCuda) {
    refuse("device", request.device, "host or cuda would do");
  }
  if (request.device == kCuda && request.threads > 1) {
    refuse("threads", fmt::to_string(request.threads), "a device takes no threads of the host");
  }
}

/// Before anything is measured.
void refuse_unknown_compressors(const std::vector<std::string>& specs) {
  for (const std::string& spec : specs) {
    (void)make_compressor(spec);
  }
}

int run(const BenchCodecRequest& request) {
  refuse_out_of_range(request);
  const console::Output output(request.common);
  const auto specs = chosen(request);
  refuse_unknown_compressors(specs);
  const CodecMeasurement measured =
      request.device == kHost ? measure_host(specs, request) : measure_device(specs, request);
  print(measured, request, output);
  Json results = Json::array();
  for (const Row& row : measured.rows) {
    results.push_back({{"compressor", row.compressor},
                       {"operation", row.operation},
                       {"device", measured.device},
                       {"threads", request.threads},
                       {"elements", request.elements},
                       {"gbs", row.gbs()},
                       {"gbs_median", row.gbs_in(row.seconds.median)},
                       {"gbs_slowest", row.gbs_in(row.seconds.slowest)},
                       {"speedup", row.speedup},
                       {"fraction_of_limit", row.gbs() / measured.limit}});
  }
  output.json({{"copy_bandwidth_gbs", measured.limit}, {"results", results}});
  return console::kDone;
}

}  // namespace

console::Command add_bench_codec_command(CLI::App& bench) {
  auto request = std::make_shared<BenchCodecRequest>();
  CLI::App* command =
      bench.add_subcommand("codec", "Compressors against the memory's copy bandwidth");
  console::OptionGroup group(*command, "What is measured");
  group.list("--compressor", request->compressors, "SPEC",
             "What to measure; may be given repeatedly, by default all kinds");
  group.count("--elements", request->elements, "N", "Length of the vector");
  group.count("--threads", request->threads, "N",
              "Threads that share the work, 1 to 256; more than one are timed by elapsed time",
              std::numeric_limits<int>::max());
  group.option("--device", request->device, "NAME",
               "Where: host, or cuda for a GPU, on which long vectors tell more");
  group.count("--repeats", request->repeats, "N",
              "Calls of each; the fastest counts, the median and the slowest are shown",
              kMostRepeats);
  return completed(*command, request, kBenchCodecExamples, run);
}

}  // namespace sotto::cli
