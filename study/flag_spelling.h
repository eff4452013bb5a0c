// How the program's users write settings: as its flags.
#pragma once

#include <string>
#include <string_view>

#include <sotto/base/error.h>

namespace sotto::study {

/// The settings of `sotto train`, simulate, plan and compare as flags: `lr` is `--lr`, `lazy =
/// true` is `--lazy` and `weighting = shares` is `--weighting shares`. What is no setting stays as
/// it is. Stateless.
class FlagSpelling final : public Spelling {
 public:
  std::string subject(std::string_view setting) const override;
  std::string mention(std::string_view setting, std::string_view value) const override;
};

/// What `error` says, in flags.
std::string in_flags(const Error& error);

}  // namespace sotto::study
