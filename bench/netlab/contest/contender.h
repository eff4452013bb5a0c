// The programs and methods that `netlab race` and `netlab finish` compare: one table, in which a
// contender is one entry. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sotto::netlab {

/// What runs on the hosts (contender_words.h knows how).
enum class Runner {
  sotto,         ///< `sotto train`
  sotto_peer,    ///< bench/peers/sotto_peer.cc
  gloo_peer,     ///< bench/peers/gloo_collectives.cc
  gloo_trainer,  ///< bench/peers/gloo_train.cc
  mpi_peer,      ///< bench/peers/mpi_peer.cc under mpirun
  ddp_peer,      ///< bench/peers/ddp_peer.py
};

/// What a ratio may be taken against.
enum class Baseline {
  none,
  gloo,      ///< full-precision all-reduce by Gloo's own collectives
  others,    ///< full-precision all-reduce by another program
  own,       ///< all-reduce by sotto itself
  ddp_hook,  ///< DistributedDataParallel with a communication hook
};

/// A program and a method that take part.
struct Contender {
  std::string_view name;  ///< as tables have it
  Runner runner = Runner::sotto;
  std::string_view
      words;  ///< what the runner is told; for both of sotto's, a run as `sotto compare` has it
  std::string_view transport;  ///< sotto's transport; empty for others
  Baseline baseline = Baseline::none;
  /// About how long a round takes, where a full-precision all-reduce takes 1: only so that all run
  /// for about as long.
  double share = 1;
};

/// Contenders of `netlab race`.
std::span<const Contender> step_contenders();
/// Contenders of `netlab finish`, which train.
std::span<const Contender> training_contenders();

/// Contenders of `all` whose name is in `names`, or contains a name there that is nobody's; all
/// of them for no names. Throws Error for a name that fits none.
std::vector<Contender> choose(std::span<const Contender> all,
                              const std::vector<std::string>& names);

/// How many rounds a contender takes where a full-precision all-reduce takes `rounds`.
int rounds_of(const Contender& contender, int rounds);

}  // namespace sotto::netlab
