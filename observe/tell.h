// The callback through which an output reports that it failed and that the run goes on. A plain
// type.
#pragma once

#include <functional>

#include <sotto/base/setting_text.h>

namespace sotto {

/// Takes a warning of one line, in which the output goes by the name of its setting.
using Tell = std::function<void(const SettingText& text)>;

}  // namespace sotto
