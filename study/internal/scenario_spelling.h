// How a scenario's file writes the settings of its runs, and what refuses one of these runs in
// words of that file. Plain values and pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <sotto/base/error.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/train/run_spec.h>

namespace sotto::study {

/// The spelling of a scenario's file in what is said of one run: `lr=0.1` for what the words of the
/// run set, and `task.lr = 0.1` for what [task] sets, or could. Both must outlive the spelling.
class ScenarioSpelling final : public Spelling {
 public:
  ScenarioSpelling(const Scenario& scenario, const RunSpec& run) : scenario_(scenario), run_(run) {}

  /// "ocean.toml:9: task.lr" for what the file sets for all runs, else as `mention` has it.
  std::string subject(std::string_view setting) const override;
  std::string mention(std::string_view setting, std::string_view value) const override;
  /// Where the file sets it for all runs, "ocean.toml:9: task.lr"; empty: it does not, or the run
  /// has a value of its own.
  std::string shared_place(std::string_view setting) const;

 private:
  const Scenario& scenario_;
  const RunSpec& run_;
};

/// What refuses the words of a run, with `place` and the words in front.
Error refusal_of_words(const std::string& place, const std::string& words, const Error& error,
                       const Spelling& spelling);
/// What refuses run number `run` of the scenario, with file, line and key in front.
Error refusal_of_run(const Scenario& scenario, std::size_t run, const Error& error);

/// What `act` returns; where it is refused, the error has the run's place in front.
template <typename Act>
auto naming_run(const Scenario& scenario, std::size_t run, const Act& act) {
  try {
    return act();
  } catch (const Stopped&) {
    throw;
  } catch (const Shortage&) {
    throw;
  } catch (const Error& error) {
    throw refusal_of_run(scenario, run, error);
  }
}

}  // namespace sotto::study
