// The model of a node outside a run of nodes that come and go: what lies in its folder, and what it
// has of a run that it gave up. Not for users.
//
// Thread safety: one thread at a time. Ownership: all that the constructor takes is the caller's
// and must outlive the object.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include <sotto/base/ids.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/sites/elastic/elastic_options.h>
#include <sotto/sites/elastic/elastic_reporter.h>
#include <sotto/sites/elastic/elastic_state.h>
#include <sotto/sites/epochs/epoch_local_steps.h>
#include <sotto/sites/epochs/epoch_member.h>
#include <sotto/sites/nodes/state/site_folder.h>

namespace sotto {

class KeptModel {
 public:
  /// Without a folder nothing is read or written; `local` is null without local steps.
  KeptModel(SiteFolder* folder, const ElasticOptions& options, const ParameterLayout& layout,
            sites::EpochLocalSteps* local, ElasticReporter& reporter);

  /// Reads the newest model in the folder that the member takes, and what the rule of local steps
  /// remembers; those that are damaged are set aside. The member is of no more use. Throws Error
  /// where the model is not one of these options, and where a rule of the caller's fails.
  void read(sites::EpochMember& trial);
  /// The model for the next member; none: the parameters.
  const std::optional<ElasticState>& next() const { return next_; }
  /// The next member has taken it.
  void used() { next_.reset(); }
  /// Keeps the model of a run that is given up, unless it is not sound
  /// (sites::EpochMember::has_sound_model).
  void keep_of(const sites::EpochMember& member);
  /// Tells of the model that was read.
  void tell() const;
  /// Writes the model of the member, if it is sound, null: the one for the next member, to the
  /// folder: beside the training where it is time, or with `now` as it is, and waits for that. What
  /// fails is told once.
  void write(sites::EpochMember* member, bool now);
  /// Goes on with a write beside the training.
  void go_on(sites::EpochMember& member) { writer_.go_on(member); }

 private:
  /// Has the rule of local steps remember this, or what it remembered before where that is damaged.
  Status load_local_rule(std::span<const std::byte> remembered);

  SiteFolder* folder_;
  const ElasticOptions& options_;
  const ParameterLayout& layout_;
  sites::EpochLocalSteps* local_;
  ElasticReporter& reporter_;
  std::string warning_;  ///< of what was read from the folder
  std::optional<ElasticState> next_;
  bool told_unsaved_ = false;
  ElasticStateWriter writer_;
};

}  // namespace sotto
