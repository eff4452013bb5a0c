// Runs a program beside this one and takes what it prints. One thread at a time.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <sotto/base/status.h>

namespace sotto::cli {

/// The path of a program in the folder of this one; empty when there is none.
std::string program_beside(const std::string& name);

/// What the program prints on standard output until it ends. `arguments` begin with its path. It is
/// killed after `most`, or on Ctrl-C. A fault says how it ended, if not with exit status 0.
Result<std::string> program_output(const std::vector<std::string>& arguments,
                                   std::chrono::milliseconds most);

}  // namespace sotto::cli
