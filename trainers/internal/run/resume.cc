#include "resume.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>
#include <sotto/trainers/settings/agreed_settings.h>

namespace sotto::internal {
namespace {

constexpr std::size_t kMostText = 1 << 16;

/// The checkpoints of one node.
struct Offer {
  std::set<Round> rounds;  ///< rounds with whole checkpoints
  std::string obstacle;    ///< reason why this node cannot go on at all
  bool others = false;     ///< the obstacle is that the run had other settings
  std::string damage;      ///< reason why a file is passed over
};

Offer look(const CheckpointFolder& folder, const std::string& agreement, Round rounds) {
  Offer offer;
  for (const Round round : folder.rounds()) {
    const auto checkpoint = folder.read(round);
    if (!checkpoint.ok()) {
      offer.damage = checkpoint.status().message();
      continue;
    }
    const std::string difference = first_difference(agreement, checkpoint->agreement);
    if (!difference.empty()) {
      offer.obstacle = fmt::format(
          "the checkpoint of round {} was made under other settings: {}; resuming goes on exactly "
          "where a run was, so give it the same",
          round, difference);
      offer.others = true;
      break;
    }
    if (round > rounds) {
      offer.obstacle =
          fmt::format("the checkpoint is of round {}, the run ends at round {}", round, rounds);
      break;
    }
    offer.rounds.insert(round);
  }
  return offer;
}

std::vector<std::byte> encode(const Offer& offer) {
  ByteBuffer out;
  out.write_string(offer.obstacle);
  out.write_string(offer.damage);
  out.write(static_cast<std::uint8_t>(offer.others ? 1 : 0));
  for (const Round round : offer.rounds) {
    out.write(round);
  }
  return std::move(out).take();
}

Offer decode(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Offer offer;
  offer.obstacle = in.read_string(kMostText);
  offer.damage = in.read_string(kMostText);
  offer.others = in.read<std::uint8_t>() != 0;
  while (in.remaining() >= sizeof(Round)) {
    offer.rounds.insert(in.read<Round>());
  }
  return offer;
}

struct Decision {
  std::string obstacle;
  Round round = 0;
  bool others = false;  ///< some obstacle is that the run had other settings
};

/// True when no node has a file, whole or damaged.
bool nothing_saved(const std::vector<std::vector<std::byte>>& offers) {
  return std::all_of(offers.begin(), offers.end(), [](const auto& bytes) {
    const Offer offer = decode(bytes);
    return offer.rounds.empty() && offer.damage.empty() && offer.obstacle.empty();
  });
}

Decision decide(const std::vector<std::vector<std::byte>>& offers, const std::string& folder,
                const std::function<void(const std::string&)>& warning) {
  if (nothing_saved(offers)) {
    return {fmt::format("there is no checkpoint yet in {}: start the run without resuming, or "
                        "name the folder of an earlier one",
                        folder),
            0};
  }
  std::set<Round> common;
  std::string holdings;
  std::string damage;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    const Offer offer = decode(offers[rank]);
    if (!offer.obstacle.empty()) {
      return {fmt::format("node {}: {}", rank, offer.obstacle), 0, offer.others};
    }
    if (!offer.damage.empty()) {
      damage += (damage.empty() ? "" : "; ") + offer.damage;
    }
    if (rank == 0) {
      common = offer.rounds;
    }
    std::erase_if(common, [&](Round round) { return !offer.rounds.contains(round); });
    if (common.empty() && holdings.empty()) {
      holdings = fmt::format("node {} has {}", rank,
                             offer.rounds.empty() ? "no whole checkpoint" : "only other rounds");
    }
  }
  if (common.empty()) {
    return {fmt::format("there is no round of which all nodes have a whole checkpoint: {}{}{}; "
                        "start the run without resuming",
                        holdings, damage.empty() ? "" : "; ", damage),
            0};
  }
  if (!damage.empty() && warning) {
    warning(fmt::format("resuming from round {}: {}", *common.rbegin(), damage));
  }
  return {"", *common.rbegin()};
}

}  // namespace

Result<Round> agree_on_round(const CheckpointFolder& folder, const std::string& agreement,
                             Round rounds, StoreCollectives& collectives,
                             const std::function<void(const std::string&)>& warning) {
  const auto offers = collectives.gather("resume", encode(look(folder, agreement, rounds)));
  if (!offers.ok()) {
    return offers.status();
  }
  ByteBuffer decided;
  if (!offers->empty()) {
    const Decision decision = decide(*offers, folder.path(), warning);
    decided.write_string(decision.obstacle);
    decided.write(decision.round);
    decided.write(static_cast<std::uint8_t>(decision.others ? 1 : 0));
  }
  const auto answer = collectives.broadcast("resume-from", decided.bytes());
  if (!answer.ok()) {
    return answer.status();
  }
  ByteReader in(*answer);
  const std::string obstacle = in.read_string(kMostText);
  const auto round = in.read<Round>();
  const bool others = in.read<std::uint8_t>() != 0;
  if (obstacle.empty()) {
    return round;
  }
  SettingText why = obstacle;
  if (others) {
    why += ", or start a new run from the mean of the saved models, with " +
           mention("init", folder.path()) + " and a new folder for its checkpoints" +
           fmt::format(" (`sotto checkpoint export {} --mean FILE` writes it)", folder.path());
  }
  throw Error("resume", why);
}

}  // namespace sotto::internal
