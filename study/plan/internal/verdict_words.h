// The sentences of a verdict (plan_verdict.h). Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <sotto/study/plan/planned_run.h>
#include <sotto/study/plan/ranking.h>

namespace sotto::study {

/// Says things of one set of runs, which it calls by their index, as a user reads them. Runs that
/// are said to be better, or not to be, have a figure.
class VerdictWords {
 public:
  /// Both must outlive this.
  VerdictWords(const std::vector<PlannedRun>& runs, const Ranking& ranking)
      : runs_(runs), ranking_(ranking) {}

  /// A compressed run won, over the best run without compression and all-reduce, where these
  /// reached what was asked for.
  std::string compress(std::size_t winner, std::optional<std::size_t> plain,
                       std::optional<std::size_t> allreduce) const;
  /// A run without compression won, over the best compressed one and all-reduce, where these
  /// reached what was asked for.
  std::string plain(std::size_t winner, std::optional<std::size_t> compressed,
                    std::optional<std::size_t> allreduce) const;
  /// How far the winner's worst node is from the averaged model, whose target was ranked by; empty
  /// where it is near, or that is not known.
  std::string apart(std::size_t winner) const;
  /// Which runs' nodes ended early, and why; empty where none did.
  std::string early_ends() const;

 private:
  double figure(std::size_t run) const { return *figure_of(runs_[run], ranking_); }
  const std::string& words(std::size_t run) const { return runs_[run].label; }
  bool is_allreduce(std::size_t run) const { return runs_[run].candidate.baseline(); }
  std::string text(std::size_t run) const { return ranking_.text(figure(run)); }
  std::string reaches(std::size_t run) const;
  std::string named(std::size_t run) const;
  double bytes(std::size_t run) const;
  std::string more_bytes(std::size_t winner, std::size_t compressed) const;
  bool any_compressed() const;
  std::string over_allreduce(std::size_t winner, std::size_t allreduce) const;
  std::string against_compressed(double gain, std::size_t compressed) const;
  std::string missed(std::optional<std::size_t> allreduce) const;

  const std::vector<PlannedRun>& runs_;
  const Ranking& ranking_;
};

}  // namespace sotto::study
