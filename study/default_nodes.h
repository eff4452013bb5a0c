// The default number of nodes of a run or a graph. A constant.
#pragma once

namespace sotto::study {

/// The default number of nodes.
inline constexpr int kDefaultNodes = 8;

}  // namespace sotto::study
