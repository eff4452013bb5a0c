// The outputs of a run's figures as settings by name, for the program and for other languages. A
// pure function; thread-safe.
#pragma once

#include <sotto/base/setting.h>
#include <sotto/observe/telemetry.h>

namespace sotto {

/// The outputs that every way to run has: metrics, log-json, tensorboard and trace. They point into
/// `options`, which must outlive them.
SettingGroup telemetry_settings(TelemetryOptions& options);

}  // namespace sotto
