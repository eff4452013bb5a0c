// What the instruction counts are taken of: each codec's two operations, rounds of whole
// algorithms, and what observers of a run do. One thread.
#pragma once

namespace sotto::counts {

/// The function within which instructions are counted, as callgrind is to know it.
inline constexpr const char* kCountedFunction = "sotto_counted";
/// The instruction set of all kernels; counts of others are other counts.
inline constexpr const char* kInstructionSet = "AVX2";

/// The last line.
inline constexpr const char* kAllDone = "done";

/// Does all work, each item once to warm up and once within kCountedFunction, after which it prints
/// its elements and its name on a line; kAllDone in the end. "SKIPPED: why" as the first line where
/// the processor lacks the instruction set.
void do_counted_work();
/// Lines that it prints.
int counted_lines();

}  // namespace sotto::counts
