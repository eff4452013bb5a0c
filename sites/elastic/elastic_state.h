// The model of a node of an all-reduce whose nodes come and go, in its folder: a node that is
// started again may begin a run from it. The file is that of a site's state
// (sites/nodes/state/site_state_file.h) with the sections settings, those that the model depends
// on; site, parameters and step rule as sites::EpochModel::snapshot has them, and behind them what
// the rule of local steps remembers; and run.
//
// Thread safety: one thread at a time; a write beside the training is made by a thread of its own.
// Ownership: folder and options are the caller's and must outlive the writer. Memory: a copy of
// what is written, once something was. What a step waits for of a write is what sites::WholeCopy
// has not copied by then.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/sites/elastic/elastic_options.h>
#include <sotto/sites/epochs/epoch_local_steps.h>
#include <sotto/sites/epochs/epoch_member.h>
#include <sotto/sites/nodes/state/site_folder.h>
#include <sotto/sites/nodes/state/state_thread.h>

namespace sotto {

/// A model from which a node can begin.
struct ElasticState {
  Round step = 0;                       ///< steps of the run that it has had
  sites::History run{};                 ///< the run
  std::vector<std::byte> model{};       ///< sites::EpochModel::snapshot
  std::vector<std::byte> local_rule{};  ///< what the rule of local steps remembers; empty: none
  std::string file{};                   ///< path of its file; empty: it is of none
};

/// The newest state in the folder; none: it has none. States that are damaged are set aside
/// (SiteFolder::set_aside_damaged), which is added to `warning`, and so is a newer one that cannot
/// be read. Throws Error where none can be
/// read, as it is of another format, or the state is of another model, step rule or interval of
/// local steps than that of `options` with tensors `layout`.
std::optional<ElasticState> read_elastic_state(SiteFolder& folder, const ElasticOptions& options,
                                               const ParameterLayout& layout, std::string& warning);

/// Sets the state aside that was read, as it is damaged, which is added to `warning`. Throws Error
/// where it cannot be.
void set_aside(SiteFolder& folder, const ElasticState& state, std::string_view why,
               std::string& warning);

/// Writes the models that read_elastic_state reads.
class ElasticStateWriter {
 public:
  /// `folder`, null: nothing is written.
  ElasticStateWriter(SiteFolder* folder, const ElasticOptions& options,
                     const ParameterLayout& layout);

  /// Begins to copy and write the model beside the training, if the options want it by now. What
  /// the rule of local steps remembers is copied at once; `local` is null without it. Fault::io:
  /// the write before has failed, and none follows.
  Status keep(sites::EpochMember& member, const sites::EpochLocalSteps* local);
  /// Goes on with that: writes the copy once the member has made it whole.
  void go_on(sites::EpochMember& member);
  /// Writes the model as it is, if it is newer than what was written last, and waits for that.
  Status save(const sites::EpochMember& member, const sites::EpochLocalSteps* local);
  /// Writes a model of a run that was given up, likewise.
  Status save(const ElasticState& state, const sites::EpochLocalSteps* local);
  /// The folder has the model after so many steps.
  void loaded(Round step) { step_ = step; }

 private:
  void take(const sites::EpochMember& member, const sites::EpochLocalSteps* local);
  /// Makes `file_` of a model after `step` steps of a run, which `model` writes.
  void take(Round step, const sites::History& run, const std::function<void(ByteBuffer&)>& model,
            const sites::EpochLocalSteps* local);
  /// Writes what `take` makes, unless the folder has the model of this step; waits for that.
  Status save(Round step, const std::function<void()>& take);

  SiteFolder* folder_;
  const Round every_;
  const std::string settings_;
  /// The section of the run, of a model of so many bytes.
  static std::vector<std::byte> run_section(const sites::History& run, std::uint64_t model_bytes);

  Round step_ = 0;                     ///< of what was written last, or is copied to be
  Round before_ = 0;                   ///< of what was written before that
  bool copying_ = false;               ///< a member copies the model of step_
  sites::History run_{};               ///< its run
  std::vector<std::byte> local_rule_;  ///< what the rule of local steps remembered then
  SiteStateFile file_;                 ///< what is written
  StateThread thread_;                 ///< last: its job uses all members above
};

}  // namespace sotto
