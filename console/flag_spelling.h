// How the users of a program write settings: as its flags.
#pragma once

#include <string>
#include <string_view>

#include <CLI/App.hpp>

#include <sotto/base/setting_text.h>

namespace sotto::console {

/// Settings as flags: `lr` is `--lr`, `lazy = true` is `--lazy`, `weighting = shares` is
/// `--weighting shares`, and `scenario` is `SCENARIO` where that is no flag but the command's
/// argument, and `site` is `SITE.toml`. What the command has no option for stays as it is.
class FlagSpelling final : public Spelling {
 public:
  /// The flags of `command`, and of those below it that were called. It must outlive the spelling.
  explicit FlagSpelling(const CLI::App& command) : command_(command) {}

  std::string subject(std::string_view setting) const override;
  std::string mention(std::string_view setting, std::string_view value) const override;

 private:
  const CLI::App& command_;
};

}  // namespace sotto::console
