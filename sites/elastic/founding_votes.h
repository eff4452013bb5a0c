// The votes of the node that begins an all-reduce whose nodes come and go, in a folder: a node that
// has them finds the run that it began, and never begins a second one.
//
// Thread safety: one thread at a time. Ownership: holds the folder, which no other process can have
// meanwhile.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/sites/nodes/run_end.h>
#include <sotto/sites/nodes/state/site_folder.h>

namespace sotto {

/// The name of the node whose votes a folder has; empty: it has none, or none that can be read.
std::string name_of_votes(const std::string& folder);

class FoundingVotes {
 public:
  /// Reads the votes of the node `name` in `folder`; an empty path: none are kept. Throws Error
  /// where another process holds the folder, the votes are another node's, or cannot be read.
  FoundingVotes(const std::string& folder, std::string name);

  /// The votes that were found; empty: there are none.
  const std::vector<std::byte>& found() const { return found_; }
  /// How the run that these votes began ended for this node; none: it is not known.
  const std::optional<RunEnd>& end() const { return end_; }
  /// Notes that durably, where there are votes. Fault::io.
  Status note(const RunEnd& end) const;
  /// Writes votes, durably, where there is a folder. Fault::io.
  Status keep(std::span<const std::byte> votes) const;
  /// Removes the votes, and how their run ended: it was given up for another one. Fault::io.
  Status drop() const;
  /// The folder; null: there is none.
  SiteFolder* folder() const { return folder_.get(); }

 private:
  std::string name_;
  std::unique_ptr<SiteFolder> folder_;  ///< null: none
  std::vector<std::byte> found_;
  std::optional<RunEnd> end_;
};

}  // namespace sotto
