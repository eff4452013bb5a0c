#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>
#include <sotto/comm/session.h>
#include <sotto/trainers/meetings/model_average.h>
#include <sotto/trainers/meetings/store_collectives.h>

#include "../../comm/internal/meeting/rendezvous.h"
#include "messages.h"

namespace sotto_fuzz {
namespace {

using sotto::ByteReader;
using sotto::check;

/// A store that holds whatever somebody put there, and takes everything.
class StrangeStore final : public sotto::Store {
 public:
  explicit StrangeStore(ByteReader& in) : in_(in) {}

  sotto::Status set(std::string_view /*key*/, std::span<const std::byte> value) override {
    last_.assign(value.begin(), value.end());
    return {};
  }
  sotto::Result<std::vector<std::byte>> get(std::string_view /*key*/,
                                            sotto::Deadline /*deadline*/) override {
    constexpr std::uint16_t kEcho = 0xFFFF;
    if (in_.remaining() < 2) {
      return sotto::Status(sotto::Fault::deadline, "there is nothing more");
    }
    const auto length = in_.read<std::uint16_t>();
    if (length == kEcho) {
      return last_;  // a peer that names back what it was told
    }
    const auto value = in_.take(std::min<std::size_t>(length, in_.remaining()));
    return std::vector<std::byte>(value.begin(), value.end());
  }
  sotto::Status remove(std::string_view key) override {
    check(key.size() <= sotto::kMostStoreKeyBytes,
          "keys that are removed are no longer than keys are");
    return {};
  }

 private:
  ByteReader& in_;
  std::vector<std::byte> last_;
};

}  // namespace

void meet_strangers(std::string_view /*name*/, std::span<const std::byte> input) {
  ByteReader in(input);
  const auto who = in.read<std::uint8_t>();
  const auto store = std::make_shared<StrangeStore>(in);
  const sotto::Rank rank = who % 2;
  const auto session = sotto::make_session(store, rank, 2, std::chrono::milliseconds(0));
  (void)session->enter();

  sotto::TransportOptions options;
  options.rank = rank;
  options.nodes = 2;
  options.store = store;
  (void)sotto::internal::meet(options, "fuzz", {{1 - rank, {std::byte{1}}}},
                              sotto::Deadline::after({}));

  sotto::StoreCollectives collectives(*store, rank, 2, std::chrono::milliseconds(0));
  const std::array<float, 3> model = {1, 2, 3};
  (void)collectives.fault_notice().given_up();
  (void)sotto::ModelAverage(collectives).meet(0, model, 5, [](const sotto::AveragedModel& average) {
    check(average.parameters.size() == 3, "models of another length are refused");
  });
}

}  // namespace sotto_fuzz
