// The targets of comm/'s transports and stores.
//
// Inputs. `wire`: what a peer says behind its hello, as messages, each behind its length (2 bytes).
// `store`: lines (1 byte: client and line) with a message each behind its length, and every message
// is taken as an answer too. `meeting`: who we are (1 byte), then the values of a store, in the
// order in which they are asked for, each behind its length.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace sotto_fuzz {

#ifdef SOTTO_HAVE_ZMQ
void hear_transport(std::string_view name, std::span<const std::byte> input);
void ask_store(std::string_view name, std::span<const std::byte> input);
#endif
void meet_strangers(std::string_view name, std::span<const std::byte> input);

}  // namespace sotto_fuzz
