#include <sotto/trainers/files/section_file.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>
#include <sotto/base/xxh3.h>

namespace sotto {
namespace {

constexpr std::size_t kHeaderBytes = 40;
constexpr std::size_t kSectionHeaderBytes = 24;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
/// Settings are a page of text.
constexpr std::uint64_t kMostSettings = std::uint64_t{1} << 20;

struct SectionHeader {
  std::uint32_t id = 0;
  std::uint32_t zero = 0;
  std::uint64_t length = 0;
  std::uint64_t sum = 0;
};

SectionHeader read_section_header(ByteReader& in) {
  SectionHeader header;
  header.id = in.read<std::uint32_t>();
  header.zero = in.read<std::uint32_t>();
  header.length = in.read<std::uint64_t>();
  header.sum = in.read<std::uint64_t>();
  return header;
}

/// The contents of the section that must come next; empty optional when it is damaged.
std::optional<std::span<const std::byte>> read_section(ByteReader& in, std::uint32_t id) {
  const SectionHeader header = read_section_header(in);
  const auto contents = in.take(header.length);
  if (in.failed() || header.id != id || header.zero != 0 || xxh3(contents) != header.sum) {
    return std::nullopt;
  }
  return contents;
}

Status damaged(const FileKind& kind, std::string_view what) {
  return {Fault::malformed, fmt::format("the {} is damaged: {}", kind.noun, what)};
}

Status read_header(const FileKind& kind, std::span<const std::byte> bytes, SectionFile& out) {
  ByteReader in(bytes.first(std::min(bytes.size(), kHeaderBytes)));
  std::array<char, 8> magic{};
  in.read_into(std::span<char>(magic));
  const auto version = in.read<std::uint32_t>();
  const auto sections = in.read<std::uint32_t>();
  out.first = in.read<std::uint32_t>();
  out.second = in.read<std::uint32_t>();
  out.round = in.read<std::uint64_t>();
  const auto sum = in.read<std::uint64_t>();
  if (in.failed() || magic != kind.magic) {
    return {Fault::malformed, fmt::format("it is no {} of sotto", kind.noun)};
  }
  if (sum != xxh3(bytes.first(kHeaderBytes - sizeof sum))) {
    return damaged(kind, "its header's checksum is wrong");
  }
  if (version != kind.version || sections != kind.sections.size()) {
    return {Fault::malformed, fmt::format("it is a {} of format {}; this program reads format {}",
                                          kind.noun, version, kind.version)};
  }
  return {};
}

/// Reads up to `size` bytes; fewer where the file ends.
std::vector<std::byte> read_piece(std::istream& in, std::size_t size) {
  std::vector<std::byte> piece(size);
  in.read(reinterpret_cast<char*>(piece.data()), static_cast<std::streamsize>(size));
  piece.resize(static_cast<std::size_t>(in.gcount()));
  return piece;
}

/// Whether the next `header.length` bytes have the checksum; appends them to `keep`, if that is
/// wanted.
bool check_contents(std::istream& in, const SectionHeader& header, std::string* keep) {
  XXH3_state_t* state = XXH3_createState();
  check(state != nullptr && XXH3_64bits_reset(state) == XXH_OK, "a checksum's state");
  std::uint64_t left = header.length;
  while (left > 0) {
    const auto piece =
        read_piece(in, static_cast<std::size_t>(std::min<std::uint64_t>(left, kPieceBytes)));
    if (piece.empty()) {
      break;
    }
    XXH3_64bits_update(state, piece.data(), piece.size());
    if (keep != nullptr) {
      keep->append(reinterpret_cast<const char*>(piece.data()), piece.size());
    }
    left -= piece.size();
  }
  const bool whole = left == 0 && XXH3_64bits_digest(state) == header.sum;
  XXH3_freeState(state);
  return whole;
}

void inspect_sections(std::istream& in, FileReport& report) {
  for (std::uint32_t k = 0; k < report.kind->sections.size(); ++k) {
    const auto raw = read_piece(in, kSectionHeaderBytes);
    ByteReader reader(raw);
    const SectionHeader header = read_section_header(reader);
    const std::string_view name = report.kind->sections[k];
    if (reader.failed() || header.id != k + 1 || header.zero != 0) {
      report.sections.push_back({.name = name});
      report.trouble = fmt::format("section '{}' and what follows: its header", name);
      return;
    }
    std::string text;
    const bool keep = k == 0 && header.length <= kMostSettings;
    const bool whole = check_contents(in, header, keep ? &text : nullptr);
    report.sections.push_back({name, header.length, whole});
    if (whole && keep) {
      report.settings = std::move(text);
    }
    if (!whole && report.trouble.empty()) {
      report.trouble = fmt::format("section '{}': its checksum", name);
    }
  }
  if (in.peek() != std::istream::traits_type::eof() && report.trouble.empty()) {
    report.trouble = "bytes after the last section";
  }
}

}  // namespace

SectionParts::SectionParts(const FileKind& kind, const SectionFile& file) {
  check(file.sections.size() == kind.sections.size(), "a file has all sections of its kind");
  ByteBuffer out;
  out.write_span(std::span<const char>(kind.magic));
  out.write(kind.version);
  out.write(static_cast<std::uint32_t>(kind.sections.size()));
  out.write(file.first);
  out.write(file.second);
  out.write(file.round);
  out.write(xxh3(out.bytes()));
  std::uint32_t id = 0;
  for (const auto contents : file.sections) {
    out.write(++id);
    out.write(std::uint32_t{0});
    out.write(std::uint64_t{contents.size()});
    out.write(xxh3(contents));
  }
  headers_ = std::move(out).take();
  std::span<const std::byte> headers(headers_);
  parts_.reserve(1 + 2 * file.sections.size());
  parts_.push_back(headers.first(kHeaderBytes));
  headers = headers.subspan(kHeaderBytes);
  for (const auto contents : file.sections) {
    parts_.push_back(headers.first(kSectionHeaderBytes));
    parts_.push_back(contents);
    headers = headers.subspan(kSectionHeaderBytes);
  }
}

std::vector<std::byte> encode_sections(const FileKind& kind, const SectionFile& file) {
  const SectionParts encoded(kind, file);
  ByteBuffer out;
  for (const auto part : encoded.parts()) {
    out.append(part);
  }
  return std::move(out).take();
}

std::string section_text(std::span<const std::byte> section) {
  return {reinterpret_cast<const char*>(section.data()), section.size()};
}

Result<SectionFile> decode_sections(const FileKind& kind, std::span<const std::byte> bytes) {
  SectionFile file;
  if (Status status = read_header(kind, bytes, file); !status.ok()) {
    return status;
  }
  ByteReader in(bytes.subspan(kHeaderBytes));
  for (std::uint32_t k = 0; k < kind.sections.size(); ++k) {
    const auto section = read_section(in, k + 1);
    if (!section) {
      return damaged(kind, fmt::format("section '{}'", kind.sections[k]));
    }
    file.sections.push_back(*section);
  }
  if (!in.finished()) {
    return damaged(kind, "bytes after the last section");
  }
  return file;
}

Result<FileReport> inspect_file(const std::string& path, std::span<const FileKind* const> kinds) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) {
    return Status(Fault::io,
                  fmt::format("{}: there is no such file, or it is no regular one", path));
  }
  std::ifstream in(path, std::ios::binary);
  const auto header = read_piece(in, kHeaderBytes);
  if (header.empty()) {
    return Status(Fault::io, fmt::format("cannot read {}, or it is empty", path));
  }
  FileReport report;
  SectionFile file;
  Status status;
  for (const FileKind* kind : kinds) {
    if (header.size() >= kind->magic.size() &&
        std::equal(kind->magic.begin(), kind->magic.end(),
                   reinterpret_cast<const char*>(header.data()))) {
      report.kind = kind;
      status = read_header(*kind, header, file);
    }
  }
  if (report.kind == nullptr) {
    std::vector<std::string_view> nouns;
    for (const FileKind* kind : kinds) {
      nouns.push_back(kind->noun);
    }
    return Status(Fault::malformed,
                  fmt::format("{}: it is no {} of sotto's", path, fmt::join(nouns, ", and no ")));
  }
  if (!status.ok()) {
    return status.with_context(path);
  }
  report.first = file.first;
  report.second = file.second;
  report.round = file.round;
  inspect_sections(in, report);
  in.clear();
  in.seekg(0, std::ios::end);
  report.bytes = static_cast<std::uint64_t>(std::max<std::streamoff>(in.tellg(), 0));
  return report;
}

}  // namespace sotto
