// Which settings of `sotto train` a scenario's [task] may have. Pure functions; thread-safe.
#pragma once

#include <string_view>

#include <sotto/base/setting.h>

namespace sotto::study {

/// Whether [task] may set it: a scenario does not say it otherwise.
bool stands_in_task(const Setting& setting);
/// Likewise of the setting of this name, as "weight-decay"; false where there is none.
bool stands_in_task(std::string_view name);

}  // namespace sotto::study
