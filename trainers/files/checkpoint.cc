#include <sotto/trainers/files/checkpoint.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/durable_file.h>
#include <sotto/base/error.h>
#include <sotto/base/number.h>

namespace sotto {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kSections = {"agreement", "optimizer", "run"};
constexpr FileKind kKind = {.magic = {'S', 'O', 'T', 'O', 'S', 'A', 'V', 'E'},
                            .version = 1,
                            .noun = "checkpoint",
                            .sections = kSections};
constexpr std::string_view kSuffix = ".checkpoint";

std::string file_name(Rank rank, Round round) {
  return fmt::format("node-{}.round-{}{}", rank, round, kSuffix);
}

SectionFile sections_of(const Checkpoint& checkpoint) {
  return {.first = static_cast<std::uint32_t>(checkpoint.rank),
          .second = static_cast<std::uint32_t>(checkpoint.nodes),
          .round = checkpoint.round,
          .sections = {std::as_bytes(std::span(checkpoint.agreement)), checkpoint.optimizer,
                       checkpoint.run}};
}

/// The number behind `before`, which it cuts off `text` with it; none: there is none.
template <typename Number>
std::optional<Number> number_behind(std::string_view before, std::string_view& text) {
  if (!text.starts_with(before)) {
    return std::nullopt;
  }
  text.remove_prefix(before.size());
  return take_number<Number>(text);
}

}  // namespace

std::optional<CheckpointName> checkpoint_name(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  std::string_view rest = name;
  const auto rank = number_behind<Rank>("node-", rest);
  const auto round = rank ? number_behind<Round>(".round-", rest) : std::nullopt;
  return round && name == file_name(*rank, *round)
             ? std::optional(CheckpointName{*rank, *round, path})
             : std::nullopt;
}

const FileKind& checkpoint_kind() { return kKind; }

std::vector<std::byte> encode_checkpoint(const Checkpoint& checkpoint) {
  return encode_sections(kKind, sections_of(checkpoint));
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
  checkpoint.agreement = section_text(file->sections[0]);
  checkpoint.optimizer.assign(file->sections[1].begin(), file->sections[1].end());
  checkpoint.run.assign(file->sections[2].begin(), file->sections[2].end());
  return checkpoint;
}

Result<Checkpoint> read_checkpoint(const CheckpointName& name) {
  const auto bytes = read_file(name.path, kMostStateBytes);
  if (!bytes.ok()) {
    return bytes.status();
  }
  auto checkpoint = decode_checkpoint(*bytes);
  if (!checkpoint.ok()) {
    return checkpoint.status().with_context(name.path);
  }
  if (checkpoint->rank != name.rank || checkpoint->round != name.round) {
    return Status(Fault::malformed, fmt::format("{}: it holds round {} of node {}", name.path,
                                                checkpoint->round, checkpoint->rank));
  }
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
  return (fs::path(folder_) / file_name(rank_, round)).string();
}

std::vector<Round> CheckpointFolder::rounds() const {
  std::vector<Round> found;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder_, code)) {
    if (const auto name = checkpoint_name(entry.path().string()); name && name->rank == rank_) {
      found.push_back(name->round);
    }
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  return found;
}

Result<Checkpoint> CheckpointFolder::read(Round round) const {
  return read_checkpoint({rank_, round, path_of(round)});
}

Status CheckpointFolder::write(const Checkpoint& checkpoint, Round before) {
  check(checkpoint.rank == rank_, "a node writes its own checkpoints");
  const SectionParts bytes(kKind, sections_of(checkpoint));
  if (Status status = write_durably(path_of(checkpoint.round), bytes.parts()); !status.ok()) {
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
