// Checkpoints: what one node needs to go on bit for bit, in a file that is either whole or refused.
//
// A file `node-RANK.round-ROUND.checkpoint` (section_file.h) with the magic "SOTOSAVE", rank and
// nodes in the header, and the sections agreement (1), optimizer (2) and run (3).
// Writing goes beside the old file, syncs, then renames (durable_file.h); the file before the
// newest is kept, older ones are removed.
//
// Thread safety: one thread at a time; different nodes may share a folder.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/trainers/files/section_file.h>

namespace sotto {

struct Checkpoint {
  Rank rank = 0;
  int nodes = 1;
  Round round = 0;
  std::string agreement;             ///< Optimizer::agreement() of the run that wrote it
  std::vector<std::byte> optimizer;  ///< state from Optimizer::save
  std::vector<std::byte> run;        ///< history and clocks
};

/// The magic and the sections of a checkpoint's file.
const FileKind& checkpoint_kind();

/// The file's bytes.
std::vector<std::byte> encode_checkpoint(const Checkpoint& checkpoint);

/// Decodes a checkpoint. Fault::malformed describes the damage; a damaged file is never accepted.
Result<Checkpoint> decode_checkpoint(std::span<const std::byte> bytes);

/// The fields in the name of a checkpoint's file.
struct CheckpointName {
  Rank rank = 0;
  Round round = 0;
  std::string path;
};

/// Parses the name of a checkpoint's file; none if `path` is not such a name.
std::optional<CheckpointName> checkpoint_name(const std::string& path);

/// The checkpoint in the file of this name; Fault::malformed too where it is another node's or
/// round's. Faults name the file.
Result<Checkpoint> read_checkpoint(const CheckpointName& name);

/// One node's files in a folder.
class CheckpointFolder {
 public:
  /// Makes the folder if it is absent; throws Error when that fails.
  CheckpointFolder(std::string folder, Rank rank);

  const std::string& path() const { return folder_; }

  /// Rounds of which this node has a file, newest first; whether they are whole, read says.
  std::vector<Round> rounds() const;
  /// Faults name the file.
  Result<Checkpoint> read(Round round) const;
  /// Writes the state of checkpoint.round and keeps that of `before`, the checkpoint before it;
  /// other files of this node are removed.
  Status write(const Checkpoint& checkpoint, Round before);

 private:
  std::string path_of(Round round) const;

  std::string folder_;
  Rank rank_;
};

}  // namespace sotto
