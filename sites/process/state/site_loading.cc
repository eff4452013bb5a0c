#include <sotto/sites/process/state/site_loading.h>

#include <cstdint>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

using Level = SiteEvent::Level;

void warn_of_clock(const SiteFolder& folder, const SiteReporter& reporter) {
  if (const std::uint32_t behind = folder.clock_behind_s(); behind > 0) {
    reporter.tell(
        Level::warning, SiteEvent::Kind::clock_behind,
        fmt::format("the clock is {} s behind that of this site's last start: where it was set "
                    "back, start with a new state folder only once it is right again",
                    behind),
        {{"behind_s", std::uint64_t{behind}}});
  }
}

void warn_of_folder(const SiteFolder& folder, const SiteReporter& reporter) {
  if (const std::string doubt = folder.doubt(); !doubt.empty()) {
    reporter.tell(Level::warning, SiteEvent::Kind::setting, doubt);
  }
}

/// Throws Error for a state that this site cannot go on from.
void admit_state(const SiteParts& parts, const SiteStateFile& state) {
  if (const auto format = sites::format_of_state(state.site);
      !format.empty() && format != sites::state_format()) {
    throw Error(fmt::format(
        "the state in {} is of the format '{}', and this version reads '{}' alone: start anew with "
        "another folder, and init set to a model that the other version wrote",
        parts.folder->path(), format, sites::state_format()));
  }
  if (const auto difference = state_difference(parts.options.name, parts.settings, state.settings);
      !difference.empty()) {
    throw Error(
        fmt::format("the state in {} was kept under other settings: {}; give these, or "
                    "start anew with another folder",
                    parts.folder->path(), difference));
  }
}

}  // namespace

Result<bool> load_site(SiteParts& parts, SiteStateWriter& writer, const SiteReporter& reporter) {
  if (parts.folder == nullptr) {
    reporter.tell(Level::info, SiteEvent::Kind::started, "a new site, which keeps no state");
    writer.loaded();
    return false;
  }
  warn_of_clock(*parts.folder, reporter);
  warn_of_folder(*parts.folder, reporter);
  auto found = parts.folder->read();
  if (!found.ok()) {
    return found.status();
  }
  if (!found->has_value()) {
    reporter.tell(Level::info, SiteEvent::Kind::started, "no state in the folder: a new site");
    const Status written = writer.save(!writer.beside());
    return written.ok() ? Result<bool>(false) : written;
  }
  const SiteStateFile& state = (*found)->state;
  const bool damaged = !(*found)->warning.empty();
  if (damaged) {
    reporter.tell(Level::warning, SiteEvent::Kind::state_damaged, (*found)->warning);
  }
  admit_state(parts, state);
  ByteReader in(state.site);
  if (Status status = parts.site.load(in); !status.ok()) {
    return status.with_context(parts.folder->path());
  }
  const auto run = decode_site_run(state.run);
  if (!run.ok()) {
    return run.status().with_context(parts.folder->path());
  }
  if (Status status = parts.gradients.expect_steps(run->steps); !status.ok()) {
    return status;
  }
  writer.loaded();
  if (!run->complete || (writer.beside() && damaged)) {
    parts.site.disown_past();
    reporter.tell(Level::warning, SiteEvent::Kind::started,
                  fmt::format("has a model of round {}, which was not the last that others "
                              "were told of: begins anew with it, or with a neighbour's",
                              parts.site.round()));
    return true;
  }
  reporter.tell(Level::info, SiteEvent::Kind::started,
                fmt::format("goes on from round {}", parts.site.round()));
  const Status written = writer.beside() ? writer.save(false) : Status();
  return written.ok() ? Result<bool>(false) : written;
}

}  // namespace sotto
