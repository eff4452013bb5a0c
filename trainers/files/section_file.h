// Files made of sections, each with its checksum: what checkpoints (checkpoint.h) and the states of
// sites (sites/nodes/state/site_state_file.h) have in common. Little-endian:
//
//   header   magic, 8 bytes | version u32 | sections u32 | first u32 | second u32 | round u64 |
//            XXH3-64 of the bytes before, u64
//   section  id u32 | zero u32 | length u64 | XXH3-64 of the contents, u64 | contents
// Sections stand in the order of their ids, from 1, each once; nothing follows. What `first` and
// `second` are is the kind's business.
//
// Checksums are against accidents. An attacker that can write a file can also write matching
// checksums; what reads the contents is bounded on its own.
//
// Pure functions but for inspect_file; thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/status.h>

namespace sotto {

/// The most bytes of a file with a saved state: a checkpoint, a site's state, or what a program
/// saved. The largest model, its step rule and its replicas take less.
inline constexpr std::size_t kMostStateBytes = std::size_t{1} << 37;

/// The magic and the sections of a kind of file.
struct FileKind {
  std::array<char, 8> magic;
  std::uint32_t version = 1;
  std::string_view noun;  ///< name of the kind in messages, "checkpoint"
  std::span<const std::string_view> sections;
};

/// A file taken apart; sections are views.
struct SectionFile {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  std::uint64_t round = 0;
  std::vector<std::span<const std::byte>> sections;
};

/// The bytes of a file in parts, so that large sections are not copied: headers, which it owns, and
/// the sections as they are, which must outlive it.
class SectionParts {
 public:
  /// Requires one section for each of the kind's.
  SectionParts(const FileKind& kind, const SectionFile& file);
  SectionParts(const SectionParts&) = delete;
  SectionParts& operator=(const SectionParts&) = delete;

  /// The parts, which follow one another in the file.
  std::span<const std::span<const std::byte>> parts() const& { return parts_; }
  std::span<const std::span<const std::byte>> parts() const&& = delete;

 private:
  std::vector<std::byte> headers_;
  std::vector<std::span<const std::byte>> parts_;
};

/// The bytes of a file. Requires one section for each of the kind's.
std::vector<std::byte> encode_sections(const FileKind& kind, const SectionFile& file);

/// Decodes the sections of a file. Fault::malformed describes the damage; a damaged file is never
/// accepted.
Result<SectionFile> decode_sections(const FileKind& kind, std::span<const std::byte> bytes);

/// A section that holds a text.
std::string section_text(std::span<const std::byte> section);

/// A report on a file, for operators.
struct FileReport {
  /// One section, as found.
  struct Section {
    std::string_view name;
    std::uint64_t bytes = 0;  ///< length that the file states
    bool whole = false;
  };
  const FileKind* kind = nullptr;
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  std::uint64_t round = 0;
  std::uint64_t bytes = 0;  ///< length of the file
  std::vector<Section> sections;
  std::string settings;  ///< the first section, if it is whole
  std::string trouble;   ///< the damage; empty if the file is whole
};

/// Reads the file at `path`, which is one of `kinds`, piece by piece, in bounded memory. Fault::io
/// when it cannot be read; Fault::malformed when it is none of them, or its header is damaged.
Result<FileReport> inspect_file(const std::string& path, std::span<const FileKind* const> kinds);

}  // namespace sotto
