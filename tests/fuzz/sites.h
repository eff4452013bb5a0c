// Targets of sites (sites/core, sites/roster): its messages, a site that hears hostile ones,
// and its durable state.
//
// Inputs. `store_entry`: what an entry in a store of seeds is once it is opened, a lease or a run.
// `roster_message`: a message of a roster (sites/roster), and another for the same roster.
// `site_message`: a message of sites whose models have kSiteDimension elements.
// `site`: exchange (1 byte, odd: gossip), then commands, each an operation (1 byte, SiteCommand),
// a peer (1 byte), a length (2 bytes) and that many bytes. `site_state`: exchange, then the bytes
// that are loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sotto_fuzz {

inline constexpr std::size_t kSiteDimension = 4;

/// What `site` does with the bytes of a command.
enum class SiteCommand : std::uint8_t {
  say = 0,      ///< they are a message
  toggle = 1,   ///< the channel closes, or opens
  round = 2,    ///< a round from end to end
  hello = 3,    ///< they replace the fields of a hello that would be taken, from the end on
  parcel = 4,   ///< they are the payload of the parcel that is due
  receipt = 5,  ///< a receipt for all that was sent
  reload = 6,   ///< the process starts again from what it wrote last
};

void roster_message(std::string_view name, std::span<const std::byte> input);
void store_entry(std::string_view name, std::span<const std::byte> input);
void site_message(std::string_view name, std::span<const std::byte> input);
void site(std::string_view name, std::span<const std::byte> input);
void site_state(std::string_view name, std::span<const std::byte> input);

/// A state that `site_state` loads.
std::vector<std::byte> example_site_state(std::uint8_t exchange);

}  // namespace sotto_fuzz
