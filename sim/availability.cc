#include <sotto/sim/availability.h>

#include <sotto/base/error.h>

namespace sotto {

void validate(const Availability& availability) {
  const StepTimes& steps = availability.steps;
  if (!steps.valid()) {
    refuse("availability", "its steps", "they must ascend from 0, and end before the period does");
  }
  if (steps.at.size() == 1 && !availability.there_first) {
    refuse("availability", "a node that is never there", "it must be there at some time");
  }
}

SimTime first_presence(const NodeAvailability& availability) {
  if (availability.times == nullptr) {
    return 0;
  }
  StepCursor cursor(availability.times->steps, availability.start);
  SimTime at = 0;
  while (at != kNever && !availability.times->there(cursor.step())) {
    at = cursor.next();
    if (at != kNever) {
      cursor.advance();
    }
  }
  return at;
}

Availability availability_of(const std::vector<std::pair<SimTime, SimTime>>& intervals,
                             SimTime period) {
  Availability made;
  made.steps.period = period;
  made.there_first = !intervals.empty() && intervals.front().first == 0;
  if (!made.there_first) {
    made.steps.at.push_back(0);
  }
  for (const auto& [from, until] : intervals) {
    made.steps.at.push_back(from);
    if (until < period) {
      made.steps.at.push_back(until);
    }
  }
  return made;
}

}  // namespace sotto
