// The targets of optim/'s algorithms: what a neighbour may send, and a state that is loaded.
//
// Inputs. `algorithm`: which algorithm (1 byte), then what is done to each frame that reaches node
// 0 of a small job: FrameChange (1 byte) and what it takes. `algorithm_state`: which algorithm,
// then changes of the bytes that node 0 saved, each an offset (2 bytes), a length (1 byte) and that
// many bytes; the first byte's highest bit: the rest is the state itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sotto_fuzz {

/// What happens to a frame on its way; checksums are right again behind all but `raw`.
enum class FrameChange : std::uint8_t {
  none = 0,
  overwrite = 1,  ///< of the payload, from an offset (2 bytes) on: a length (1 byte), bytes
  cut = 2,        ///< so many bytes (2) of the payload
  extend = 3,     ///< by so many bytes (1) of a value (1)
  replace = 4,    ///< of the payload: a length (2), bytes
  header = 5,     ///< field (1), what it is XORed with (8)
  raw = 6,        ///< a byte (2: where) is XORed (1), and the checksum stays
};

void disturb_algorithm(std::string_view name, std::span<const std::byte> input);
void load_algorithm(std::string_view name, std::span<const std::byte> input);

/// How many algorithms there are to choose from.
std::size_t algorithm_choices();
/// The state of a choice that `algorithm_state` takes whole.
std::vector<std::byte> example_algorithm_state(std::uint8_t choice);

}  // namespace sotto_fuzz
