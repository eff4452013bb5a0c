#include <sotto/trainers/checkpoint.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <limits>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/trainers/durable_file.h>

namespace sotto {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kSections = {"agreement", "optimizer", "run"};
constexpr FileKind kKind = {.magic = {'S', 'O', 'T', 'O', 'S', 'A', 'V', 'E'},
                            .version = 1,
                            .noun = "checkpoint",
                            .sections = kSections};
constexpr std::string_view kSuffix = ".checkpoint";

}  // namespace

const FileKind& checkpoint_kind() { return kKind; }

std::vector<std::byte> encode_checkpoint(const Checkpoint& checkpoint) {
  return encode_sections(kKind, {.first = static_cast<std::uint32_t>(checkpoint.rank),
                                 .second = static_cast<std::uint32_t>(checkpoint.nodes),
                                 .round = checkpoint.round,
                                 .sections = {std::as_bytes(std::span(checkpoint.agreement)),
                                              checkpoint.optimizer, checkpoint.run}});
}

Result<Checkpoint> decode_checkpoint(std::span<const std::byte> bytes) {
  const auto file = decode_sections(kKind, bytes);
  if (!file.ok()) {
    return file.status();
  }
  Checkpoint checkpoint;
  checkpoint.rank = static_cast<Rank>(file->first);
  checkpoint.nodes = static_cast<int>(file->second);
  checkpoint.round = file->round;
  const auto agreement = file->sections[0];
  const auto* text = reinterpret_cast<const char*>(agreement.data());
  checkpoint.agreement.assign(text, agreement.size());
  checkpoint.optimizer.assign(file->sections[1].begin(), file->sections[1].end());
  checkpoint.run.assign(file->sections[2].begin(), file->sections[2].end());
  return checkpoint;
}

CheckpointFolder::CheckpointFolder(std::string folder, Rank rank)
    : folder_(std::move(folder)), rank_(rank) {
  std::error_code code;
  fs::create_directories(folder_, code);
  if (!fs::is_directory(folder_, code)) {
    refuse("checkpoint", folder_, "it must name a folder that can be made and written");
  }
}

std::string CheckpointFolder::path_of(Round round) const {
  return (fs::path(folder_) / fmt::format("node-{}.round-{}{}", rank_, round, kSuffix)).string();
}

std::vector<Round> CheckpointFolder::rounds() const {
  const std::string prefix = fmt::format("node-{}.round-", rank_);
  std::vector<Round> found;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder_, code)) {
    const std::string name = entry.path().filename().string();
    if (name.size() <= prefix.size() + kSuffix.size() || !name.starts_with(prefix) ||
        !name.ends_with(kSuffix)) {
      continue;
    }
    const std::string_view number =
        std::string_view(name).substr(prefix.size(), name.size() - prefix.size() - kSuffix.size());
    if (const auto round = parse_number<Round>(number)) {
      found.push_back(*round);
    }
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  return found;
}

Result<Checkpoint> CheckpointFolder::read(Round round) const {
  const auto bytes = read_file(path_of(round), std::numeric_limits<std::size_t>::max());
  if (!bytes.ok()) {
    return bytes.status();
  }
  auto checkpoint = decode_checkpoint(*bytes);
  if (!checkpoint.ok()) {
    return checkpoint.status().with_context(path_of(round));
  }
  if (checkpoint->rank != rank_ || checkpoint->round != round) {
    return Status(Fault::malformed, fmt::format("{}: it holds round {} of node {}", path_of(round),
                                                checkpoint->round, checkpoint->rank));
  }
  return checkpoint;
}

Status CheckpointFolder::write(const Checkpoint& checkpoint, Round before) {
  check(checkpoint.rank == rank_, "a node writes its own checkpoints");
  if (Status status = write_durably(path_of(checkpoint.round), encode_checkpoint(checkpoint));
      !status.ok()) {
    return status;
  }
  for (const Round round : rounds()) {
    if (round != checkpoint.round && round != before) {
      std::error_code code;
      fs::remove(path_of(round), code);  // a file that stays is only clutter
    }
  }
  return {};
}

}  // namespace sotto
