// The targets of the program: files that an operator is given, and words on its command line. The
// input is the file; of `words`, what it is to be (1 byte) and the text.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace sotto_fuzz {

void read_config(std::string_view name, std::span<const std::byte> input);
void read_words(std::string_view name, std::span<const std::byte> input);

}  // namespace sotto_fuzz
