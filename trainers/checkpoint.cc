#include <sotto/trainers/checkpoint.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <xxhash.h>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>
#include <sotto/trainers/durable_file.h>

namespace sotto {
namespace {

namespace fs = std::filesystem;

constexpr std::array<char, 8> kMagic = {'S', 'O', 'T', 'O', 'S', 'A', 'V', 'E'};
constexpr std::uint32_t kVersion = 1;
constexpr std::array<std::string_view, 3> kSections = {"agreement", "optimizer", "run"};
constexpr std::size_t kHeaderBytes = 40;
constexpr std::string_view kSuffix = ".checkpoint";

std::uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

void append_section(ByteBuffer& out, std::uint32_t id, std::span<const std::byte> contents) {
  out.write(id);
  out.write(std::uint32_t{0});
  out.write(std::uint64_t{contents.size()});
  out.write(checksum(contents));
  out.append(contents);
}

/// The contents of the section that must come next; empty optional when it is damaged.
std::optional<std::span<const std::byte>> read_section(ByteReader& in, std::uint32_t id) {
  const auto found = in.read<std::uint32_t>();
  const auto zero = in.read<std::uint32_t>();
  const auto length = in.read<std::uint64_t>();
  const auto sum = in.read<std::uint64_t>();
  const auto contents = in.take(length);
  if (in.failed() || found != id || zero != 0 || checksum(contents) != sum) {
    return std::nullopt;
  }
  return contents;
}

Status damaged(std::string_view what) {
  return {Fault::malformed, fmt::format("the checkpoint is damaged: {}", what)};
}

Status read_header(std::span<const std::byte> bytes, Checkpoint& out) {
  ByteReader in(bytes.first(std::min(bytes.size(), kHeaderBytes)));
  std::array<char, 8> magic{};
  in.read_into(std::span<char>(magic));
  const auto version = in.read<std::uint32_t>();
  const auto sections = in.read<std::uint32_t>();
  out.rank = in.read<Rank>();
  out.nodes = in.read<std::int32_t>();
  out.round = in.read<Round>();
  const auto sum = in.read<std::uint64_t>();
  if (in.failed() || magic != kMagic) {
    return {Fault::malformed, "it is no checkpoint of sotto"};
  }
  if (sum != checksum(bytes.first(kHeaderBytes - sizeof sum))) {
    return damaged("its header's checksum is wrong");
  }
  if (version != kVersion || sections != kSections.size()) {
    return {Fault::malformed,
            fmt::format("it is a checkpoint of format {}; this program reads format {}", version,
                        kVersion)};
  }
  return {};
}

}  // namespace

std::vector<std::byte> encode_checkpoint(const Checkpoint& checkpoint) {
  ByteBuffer out;
  out.write_span(std::span<const char>(kMagic));
  out.write(kVersion);
  out.write(static_cast<std::uint32_t>(kSections.size()));
  out.write(checkpoint.rank);
  out.write(std::int32_t{checkpoint.nodes});
  out.write(checkpoint.round);
  out.write(checksum(out.bytes()));
  append_section(out, 1, std::as_bytes(std::span(checkpoint.agreement)));
  append_section(out, 2, checkpoint.optimizer);
  append_section(out, 3, checkpoint.run);
  return std::move(out).take();
}

Result<Checkpoint> decode_checkpoint(std::span<const std::byte> bytes) {
  Checkpoint checkpoint;
  if (Status status = read_header(bytes, checkpoint); !status.ok()) {
    return status;
  }
  ByteReader in(bytes.subspan(kHeaderBytes));
  std::array<std::span<const std::byte>, kSections.size()> contents;
  for (std::uint32_t k = 0; k < kSections.size(); ++k) {
    const auto section = read_section(in, k + 1);
    if (!section) {
      return damaged(fmt::format("section '{}'", kSections[k]));
    }
    contents[k] = *section;
  }
  if (!in.finished()) {
    return damaged("bytes after the last section");
  }
  const auto* text = reinterpret_cast<const char*>(contents[0].data());
  checkpoint.agreement.assign(text, contents[0].size());
  checkpoint.optimizer.assign(contents[1].begin(), contents[1].end());
  checkpoint.run.assign(contents[2].begin(), contents[2].end());
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
    Round round = 0;
    const char* end = name.data() + name.size() - kSuffix.size();
    const auto parsed = std::from_chars(name.data() + prefix.size(), end, round);
    if (parsed.ec == std::errc() && parsed.ptr == end) {
      found.push_back(round);
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
