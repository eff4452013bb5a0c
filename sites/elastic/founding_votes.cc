#include <sotto/sites/elastic/founding_votes.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/durable_file.h>
#include <sotto/base/error.h>
#include <sotto/base/xxh3.h>
#include <sotto/sites/epochs/epoch_node.h>

namespace sotto {
namespace {

constexpr std::size_t kMostVotes = std::size_t{1} << 20U;
constexpr std::size_t kMostEnd = 64;  // bytes of the file that says that the run is over

std::string votes_file(const std::string& folder) { return folder + "/votes"; }
std::string votes_file(const SiteFolder& folder) { return votes_file(folder.path()); }
std::string end_file(const SiteFolder& folder) { return folder.path() + "/end"; }

/// How the run ended; none: there is no file, or none that is whole.
std::optional<RunEnd> end_in(const SiteFolder& folder) {
  std::error_code code;
  if (!std::filesystem::exists(end_file(folder), code)) {
    return std::nullopt;
  }
  const auto bytes = read_file(end_file(folder), kMostEnd);
  if (!bytes.ok()) {
    throw Error("state", bytes.status().message());
  }
  ByteReader in(*bytes);
  const RunEnd end = read_end(in);
  const std::size_t covered = bytes->size() - in.remaining();
  const auto digest = in.read<std::uint64_t>();
  const bool whole = in.finished() && xxh3(std::span(*bytes).first(covered)) == digest;
  return whole ? std::optional(end)
               : std::nullopt;  // then the node waits for that run, and says so
}

}  // namespace

std::string name_of_votes(const std::string& folder) {
  std::error_code code;
  if (folder.empty() || !std::filesystem::exists(votes_file(folder), code)) {
    return "";
  }
  const auto bytes = read_file(votes_file(folder), kMostVotes);
  if (!bytes.ok()) {
    return "";
  }
  ByteReader in(*bytes);
  std::string owner = in.read_string(sites::kMostEpochName);
  return in.failed() ? "" : owner;
}

FoundingVotes::FoundingVotes(const std::string& folder, std::string name)
    : name_(std::move(name)),
      folder_(folder.empty() ? nullptr : std::make_unique<SiteFolder>(folder)) {
  std::error_code code;
  if (!folder_) {
    return;
  }
  if (!std::filesystem::exists(votes_file(*folder_), code)) {
    std::filesystem::remove(end_file(*folder_), code);  // the end of a run is that of its votes
    return;
  }
  const auto bytes = read_file(votes_file(*folder_), kMostVotes);
  if (!bytes.ok()) {
    throw Error("state", bytes.status().message());
  }
  ByteReader in(*bytes);
  const std::string owner = in.read_string(sites::kMostEpochName);
  const auto digest = in.read<std::uint64_t>();
  const auto votes = in.take(in.remaining());
  if (in.failed() || xxh3(votes) != digest) {
    throw Error("state", fmt::format("{} is damaged: without it this node may begin a second run; "
                                     "give another folder once no node of the first one is left",
                                     votes_file(*folder_)));
  }
  if (owner != name_) {
    throw Error("state", fmt::format("{} has the votes of {}, and this node is {}: give each node "
                                     "a folder of its own, and its name",
                                     folder_->path(), owner, name_));
  }
  found_.assign(votes.begin(), votes.end());
  end_ = end_in(*folder_);
}

Status FoundingVotes::note(const RunEnd& end) const {
  std::error_code code;
  if (!folder_ || !std::filesystem::exists(votes_file(*folder_), code)) {
    return {};
  }
  ByteBuffer out;
  write_end(end, out);
  out.write(xxh3(out.bytes()));
  return write_durably(end_file(*folder_), out.bytes(), FileReaders::owner);
}

Status FoundingVotes::keep(std::span<const std::byte> votes) const {
  if (!folder_) {
    return {};
  }
  ByteBuffer out;
  out.write_string(name_);
  out.write(xxh3(votes));
  out.append(votes);
  return write_durably(votes_file(*folder_), out.bytes(), FileReaders::owner);
}

Status FoundingVotes::drop() const {
  if (!folder_) {
    return {};
  }
  // The end of a run is that of its votes: beside new ones it would be taken for theirs.
  for (const std::string& file : {end_file(*folder_), votes_file(*folder_)}) {
    std::error_code code;
    std::filesystem::remove(file, code);
    if (code) {
      return {Fault::io, fmt::format("{} cannot be removed: {}", file, code.message())};
    }
  }
  return {};
}

}  // namespace sotto
