#include <sotto/sites/live/founding_votes.h>

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>
#include <sotto/base/xxh3.h>
#include <sotto/sites/epochs/epoch_node.h>
#include <sotto/trainers/files/durable_file.h>

namespace sotto {
namespace {

constexpr std::size_t kMostVotes = std::size_t{1} << 20U;

std::string votes_file(const SiteFolder& folder) { return folder.path() + "/votes"; }

}  // namespace

FoundingVotes::FoundingVotes(const std::string& folder, std::string name)
    : name_(std::move(name)),
      folder_(folder.empty() ? nullptr : std::make_unique<SiteFolder>(folder)) {
  std::error_code code;
  if (!folder_ || !std::filesystem::exists(votes_file(*folder_), code)) {
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

}  // namespace sotto
