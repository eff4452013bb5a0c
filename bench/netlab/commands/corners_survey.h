// The times of an epoch that `netlab corners` looks at: which methods over which links, and how
// long they are predicted and measured to take. One thread at a time.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/status.h>

#include "bench/netlab/prediction/calibration.h"
#include "bench/netlab/prediction/comparison.h"
#include "bench/support/statistics.h"

namespace sotto::netlab::corners {

inline constexpr int kNodes = 8;
inline constexpr double kEpochRounds = 100;

struct Method {
  const char* name;
  const char* words;  ///< the run, as `sotto compare --run` takes it
};
inline constexpr std::array kMethods = {
    Method{"all-reduce, 32 bit", "allreduce"},
    // Rounding without error feedback: what it costs in accuracy is not asked here.
    Method{"all-reduce, 8 bit", "allreduce quant:8 allow-contract-violation=true"},
    Method{"D-PSGD, 32 bit", "dpsgd ring"}, Method{"DCD-PSGD, 8 bit", "dcd quant:8 ring"},
    Method{"DeepSqueeze, 8 bit", "deepsqueeze quant:8 ring"},
    Method{"1-bit Adam", "onebit-adam sign freeze-step=1"}};

/// The link that each node has.
struct Place {
  double mbit_per_s = 0;
  double latency_ms = 0;

  auto operator<=>(const Place&) const = default;
  std::string name() const { return fmt::format("{:g} Mbit/s, {:g} ms", mbit_per_s, latency_ms); }
};

/// One of the four plots: a line of places, of which some are measured.
struct Edge {
  std::string title;
  bool over_latency = false;
  double fixed = 0;  ///< the figure that stays: latency in ms, or Mbit/s

  Place at(double value) const { return over_latency ? Place{fixed, value} : Place{value, fixed}; }
  /// The simulator's points.
  std::vector<double> values() const;
  /// Whether the program runs at this one.
  bool measured(double value) const;
};

const std::array<Edge, 4>& edges();

/// Times of an epoch, in seconds.
struct Times {
  double predicted = 0;         ///< 0: not simulated
  std::vector<double> repeats;  ///< the measured times; empty: not measured
  double rounds = 0;            ///< the rounds of the longest run

  std::optional<double> measured() const {
    return repeats.empty() ? std::nullopt : std::optional(bench::quantile(repeats, 0.5));
  }
};
/// Times by place, then by method.
using Field = std::map<Place, std::array<Times, kMethods.size()>>;

class Survey {
 public:
  /// Each run is measured `repeats` times, for `seconds` each where an epoch takes longer.
  Survey(std::string transport, double seconds, int repeats, const Calibration& calibration,
         const RealProgram& program)
      : transport_(std::move(transport)),
        seconds_(seconds),
        repeats_(repeats),
        calibration_(calibration),
        program_(program) {}

  /// A fault names the place where it stopped; what was found until then is shown.
  Status run();

  const std::string& transport() const { return transport_; }
  const Field& field() const { return field_; }
  /// The largest error of a prediction.
  double worst() const;

 private:
  Status look(const Place& place, std::size_t method, bool measured);
  /// Seconds that so many rounds take.
  Result<double> predict(const Place& place, std::size_t method, std::uint64_t rounds) const;
  /// Runs the epoch, or where that takes longer than `seconds`, so much of it. The prediction has
  /// no other part in it.
  Status measure(const Place& place, std::size_t method, Times& times);
  /// Seconds that so many rounds take.
  Result<double> run_program_for(const Place& place, std::size_t method, double rounds) const;

  std::string transport_;
  double seconds_;
  int repeats_;
  const Calibration& calibration_;
  const RealProgram& program_;
  Field field_;
};

}  // namespace sotto::netlab::corners
