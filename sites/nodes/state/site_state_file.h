// The file of a site's state (section_file.h): the magic "SOTOSITE"; in the header the life that
// wrote it, and its number within that life; and the sections settings (1), site (2), Site::save,
// and run (3). Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/trainers/files/section_file.h>

namespace sotto {

/// What one file holds of a site.
struct SiteStateFile {
  std::uint32_t life = 0;    ///< life of the process that wrote it
  std::uint32_t number = 0;  ///< the state's number in that life, from 1
  Round round = 0;
  std::string settings;  ///< text of state_settings
  std::vector<std::byte> site;
  std::vector<std::byte> run;
};

/// The settings of a state: those that sites share, behind the site's name, as a folder may be
/// taken for another site's by mistake.
std::string state_settings(const std::string& site, const std::string& shared);
/// The first setting that is another one in a state, in words; empty: none is. States of before
/// did not say the name.
std::string state_difference(const std::string& site, const std::string& shared,
                             const std::string& of_state);

/// What a state's file begins with, and the sections that it has.
const FileKind& site_state_kind();
/// The state as sections, which are views of it.
SectionFile sections_of(const SiteStateFile& state);
/// The file's bytes.
std::vector<std::byte> encode_site_state(const SiteStateFile& state);
/// Fault::malformed says what is wrong.
Result<SiteStateFile> decode_site_state(std::span<const std::byte> bytes);

/// The section of the run.
struct SiteRunState {
  std::uint64_t steps = 0;  ///< number of gradients that were taken
  /// Others know no more of the site than this state: it was written before they were told, or in
  /// the end. False: written while the site went on, so that one that is started from it is
  /// another one, with this one's model.
  bool complete = true;
};

/// Writes the section.
std::vector<std::byte> encode_site_run(const SiteRunState& run);
/// Decodes the bytes of encode_site_run; Fault::malformed for bytes that it cannot have written.
Result<SiteRunState> decode_site_run(std::span<const std::byte> bytes);

}  // namespace sotto
