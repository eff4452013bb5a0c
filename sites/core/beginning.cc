#include <sotto/sites/core/beginning.h>

#include <algorithm>

#include <sotto/sites/core/lower_median.h>
#include <sotto/sites/core/message.h>
#include <sotto/sites/core/places.h>

namespace sotto::sites {

void Beginning::take_over(std::size_t giver, Round round) {
  giver_ = giver;
  given_ = round;
}

void Beginning::rearrange(std::span<const std::size_t> place) {
  if (giver_) {
    giver_ = place[*giver_] == kNobody ? std::nullopt : std::optional(place[*giver_]);
  }
}

void Beginning::give_up() {
  giver_.reset();
  began_by_.clear();
  said_by_ = 0;
}

Round Beginning::settle(std::span<const Round> others, std::string_view name) {
  std::vector<Round> said = {given_};
  said.insert(said.end(), others.begin(), others.end());
  said_by_ = said.size();
  began_by_ = name;
  giver_.reset();
  if (own_ > 0) {
    said.push_back(own_);
  }
  // A round has others after it, which must be as good as any to neighbours and states.
  return std::min(said.size() == 1 ? std::min(given_, believed_alone()) : lower_median(said),
                  kMostCount / 2);
}

}  // namespace sotto::sites
