#include <sotto/sites/nodes/state/site_state_file.h>

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/trainers/settings/agreed_settings.h>

namespace sotto {
namespace {

constexpr std::array<std::string_view, 3> kSiteSections = {"settings", "site", "run"};
constexpr FileKind kSiteKind = {.magic = {'S', 'O', 'T', 'O', 'S', 'I', 'T', 'E'},
                                .version = 1,
                                .noun = "site's state",
                                .sections = kSiteSections};
constexpr std::string_view kSiteSetting = "site=";
constexpr std::string_view kRunFormat = "site run 2";
constexpr std::string_view kOldRunFormat = "site run 1";

}  // namespace

std::string state_settings(const std::string& site, const std::string& shared) {
  return fmt::format("{}{}\n{}", kSiteSetting, site, shared);
}

std::string state_difference(const std::string& site, const std::string& shared,
                             const std::string& of_state) {
  const bool named = of_state.starts_with(kSiteSetting);
  return first_difference(named ? state_settings(site, shared) : shared, of_state);
}

const FileKind& site_state_kind() { return kSiteKind; }

SectionFile sections_of(const SiteStateFile& state) {
  return {.first = state.life,
          .second = state.number,
          .round = state.round,
          .sections = {std::as_bytes(std::span(state.settings)), state.site, state.run}};
}

std::vector<std::byte> encode_site_state(const SiteStateFile& state) {
  return encode_sections(kSiteKind, sections_of(state));
}

Result<SiteStateFile> decode_site_state(std::span<const std::byte> bytes) {
  const auto file = decode_sections(kSiteKind, bytes);
  if (!file.ok()) {
    return file.status();
  }
  return SiteStateFile{.life = file->first,
                       .number = file->second,
                       .round = file->round,
                       .settings = section_text(file->sections[0]),
                       .site = {file->sections[1].begin(), file->sections[1].end()},
                       .run = {file->sections[2].begin(), file->sections[2].end()}};
}

std::vector<std::byte> encode_site_run(const SiteRunState& run) {
  ByteBuffer out;
  out.write_string(kRunFormat);
  out.write(run.steps);
  out.write(static_cast<std::uint8_t>(run.complete ? 1 : 0));
  return std::move(out).take();
}

Result<SiteRunState> decode_site_run(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const std::string format = in.read_string(kRunFormat.size());
  SiteRunState run;
  run.steps = in.read<std::uint64_t>();
  // States of before were all complete, and did not say so.
  const auto complete = format == kOldRunFormat ? std::uint8_t{1} : in.read<std::uint8_t>();
  if (!in.finished() || (format != kRunFormat && format != kOldRunFormat) || complete > 1) {
    return Status(Fault::malformed, "its section 'run' breaks the format");
  }
  run.complete = complete == 1;
  return run;
}

}  // namespace sotto
