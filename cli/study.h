// The program speaks of scenarios, runs and plans as the library of studies does.
#pragma once

namespace sotto::study {}

namespace sotto::cli {

using namespace study;  // NOLINT(google-build-using-namespace): most of the program is about these

}  // namespace sotto::cli
