// The votes of the node that begins an all-reduce whose nodes come and go, in a folder: a node that
// has them finds the run that it began, and never begins a second one.
//
// Thread safety: one thread at a time. Ownership: holds the folder, which no other process can have
// meanwhile.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/sites/process/site_folder.h>

namespace sotto {

class FoundingVotes {
 public:
  /// Reads the votes of the node `name` in `folder`; an empty path: none are kept. Throws Error
  /// where another process holds the folder, the votes are another node's, or cannot be read.
  FoundingVotes(const std::string& folder, std::string name);

  /// The votes that were found; empty: there are none.
  const std::vector<std::byte>& found() const { return found_; }
  /// Writes votes, durably, where there is a folder. Fault::io.
  Status keep(std::span<const std::byte> votes) const;

 private:
  std::string name_;
  std::unique_ptr<SiteFolder> folder_;  ///< null: none
  std::vector<std::byte> found_;
};

}  // namespace sotto
