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
#include <sotto/compress/registry.h>
#include <sotto/kernels/ops.h>

#include "codec_timing.h"
#include "commands.h"
#include "nearest.h"
#include "option_group.h"
#include "output.h"

namespace sotto::cli {
namespace {

constexpr const char* kBenchCodecExamples =
    "Examples:\n"
    "  sotto bench codec\n"
    "  sotto bench codec --threads 2\n"
    "  sotto bench codec --compressor quant:4 --compressor sign --elements 1048576 --json -";

/// Beside the examples of the registry.
constexpr const char* kMoreCompressors[] = {"quant:4", "quant:2", "quant:1"};
constexpr std::size_t kMaxElements = std::size_t{1} << 30;
constexpr std::uint64_t kMostRepeats = 1'000'000;

struct BenchCodecRequest {
  CommonOptions common;
  std::vector<std::string> compressors;
  std::size_t elements = std::size_t{1} << 24;
  int repeats = 5;
  int threads = 1;
};

struct Row {
  std::string compressor;
  const char* operation;
  double gbs;
  double speedup;  ///< over one thread
};

/// The threads that work, and the clock that goes with them.
struct Crew {
  explicit Crew(int threads)
      : workers(threads == 1 ? nullptr : std::make_shared<Workers>(threads)),
        clock(threads == 1 ? Clock::processor : Clock::elapsed) {}

  std::shared_ptr<Workers> workers;  ///< null: one thread
  Clock clock;
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
    return fastest(repeats, call, crew.clock);
  };
  double seconds = std::min(time([&] { std::memcpy(to.data(), from.data(), bytes); }),
                            time([&] { host_ops().copy(from, to); }));
  if (crew.workers != nullptr) {
    seconds = std::min(seconds, time([&] { copy_together(*crew.workers, from, to); }));
  }
  return 2e-9 * static_cast<double>(bytes) / seconds;
}

/// Both operations of one compressor.
std::vector<Row> measure(const std::string& spec, std::span<const float> x, std::span<float> y,
                         const BenchCodecRequest& request, const Crew& crew) {
  const std::uint64_t seed = request.common.seed;
  const CodecTiming alone = time_codec(spec, x, y, seed, request.repeats, nullptr, crew.clock);
  const CodecTiming timing = crew.workers == nullptr ? alone
                                                     : time_codec(spec, x, y, seed, request.repeats,
                                                                  crew.workers, crew.clock);
  // What must move: value and error read, error and frame written; frame and y read, y written.
  const auto vector = static_cast<double>(x.size_bytes());
  const auto sent = static_cast<double>(timing.bytes);
  const double encode_gbs = 1e-9 * (3 * vector + sent) / timing.encode_s;
  const double decode_gbs = 1e-9 * (2 * vector + sent) / timing.decode_mix_s;
  return {{timing.spec, "encode", encode_gbs, alone.encode_s / timing.encode_s},
          {timing.spec, "decode_mix", decode_gbs, alone.decode_mix_s / timing.decode_mix_s}};
}

std::vector<std::string> chosen(const BenchCodecRequest& request) {
  if (!request.compressors.empty()) {
    return request.compressors;
  }
  std::vector<std::string> specs;
  for (const CompressorInfo& info : compressors()) {
    specs.emplace_back(info.example);
  }
  for (const char* more : kMoreCompressors) {
    if (std::find(specs.begin(), specs.end(), more) == specs.end()) {
      specs.emplace_back(more);
    }
  }
  return specs;
}

void print(const std::vector<Row>& rows, double limit, int threads, const Output& output) {
  output.line(fmt::format("copying: {:.1f} GB/s, {} thread{}, {} kernels", limit, threads,
                          threads == 1 ? "" : "s", host_ops().name()));
  std::vector<std::string> head = {"compressor", "operation", "GB/s", "of copying"};
  if (threads > 1) {
    head.emplace_back("of one thread");
  }
  std::vector<std::vector<std::string>> cells;
  cells.reserve(rows.size());
  for (const Row& row : rows) {
    cells.push_back({row.compressor, row.operation, fmt::format("{:.2f}", row.gbs),
                     fmt::format("{:.0f} %", 100 * row.gbs / limit)});
    if (threads > 1) {
      cells.back().push_back(fmt::format("{:.2f} x", row.speedup));
    }
  }
  output.table(head, cells);
}

int run(const BenchCodecRequest& request) {
  if (request.elements == 0 || request.elements > kMaxElements) {
    refuse("--elements", fmt::to_string(request.elements), "it must be 1 to 2^30");
  }
  if (request.repeats < 1) {
    refuse("--repeats", fmt::to_string(request.repeats), "at least one is needed");
  }
  if (request.threads < 1 || request.threads > Workers::kMost) {
    refuse("--threads", fmt::to_string(request.threads),
           fmt::format("1 to {} would do", Workers::kMost));
  }
  const Output output(request.common);
  const auto specs = chosen(request);
  for (const std::string& spec : specs) {
    refuse_mistyped("--compressor", spec, names_of(compressors()));
    static_cast<void>(make_compressor(spec));  // refuse before measuring
  }
  const auto x = normal_values(request.elements, request.common.seed);
  FloatVector y(x.size(), 0.0F);
  std::vector<Row> rows;
  const Crew crew(request.threads);
  double limit = 0;
  for (const std::string& spec : specs) {
    // Measured again and again, so that a moment's load on the machine lowers no limit.
    limit = std::max(limit, copy_bandwidth(x, y, request.repeats, crew));
    const auto measured = measure(spec, x, y, request, crew);
    rows.insert(rows.end(), measured.begin(), measured.end());
  }
  print(rows, limit, request.threads, output);
  Json results = Json::array();
  for (const Row& row : rows) {
    results.push_back({{"compressor", row.compressor},
                       {"operation", row.operation},
                       {"device", host_ops().name()},
                       {"threads", request.threads},
                       {"elements", request.elements},
                       {"gbs", row.gbs},
                       {"speedup", row.speedup},
                       {"fraction_of_limit", row.gbs / limit}});
  }
  output.json({{"copy_bandwidth_gbs", limit}, {"results", results}});
  return kDone;
}

}  // namespace

Command add_bench_codec_command(CLI::App& bench) {
  auto request = std::make_shared<BenchCodecRequest>();
  CLI::App* command =
      bench.add_subcommand("codec", "Compressors against the memory's copy bandwidth");
  OptionGroup group(*command, "What is measured");
  group.list("--compressor", request->compressors, "SPEC",
             "What to measure; may be given repeatedly, by default all kinds");
  group.count("--elements", request->elements, "N", "Length of the vector");
  group.count("--threads", request->threads, "N",
              "Threads that share the work, 1 to 256; more than one are timed by elapsed time",
              std::numeric_limits<int>::max());
  group.count("--repeats", request->repeats, "N", "The fastest of so many counts", kMostRepeats);
  add_common_options(*command, request->common);
  command->footer(kBenchCodecExamples);
  return {command, [request] { return run(*request); }};
}

}  // namespace sotto::cli
