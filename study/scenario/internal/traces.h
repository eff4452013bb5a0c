// How a scenario's file names traces of links. Throws Error naming line and key of what is wrong.
// One thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include <sotto/sim/network/link_trace.h>
#include <sotto/sim/time.h>
#include <sotto/study/toml/reader.h>

namespace sotto::study {

/// A trace as a scenario names it, for one link or several.
struct WrittenTrace {
  std::shared_ptr<const LinkTrace> trace;
  SimTime start = 0;
  SimTime stagger = 0;  ///< each further link starts this much later in the trace

  /// The trace of the link that is number `place` of those.
  std::shared_ptr<const TracedLink> of(std::size_t place = 0) const;
};
/// The trace that a key names: a file, or a table with `file`, `repeat`, `bin`, `start` and
/// `stagger`; none where there is no such key.
std::optional<WrittenTrace> read_trace(TomlReader& in, std::string_view key);

}  // namespace sotto::study
