#include <sotto/sim/availability.h>

#include <algorithm>

#include <sotto/base/error.h>

namespace sotto {
namespace {

/// How long a node is there before a time of its availability, in the first turn of the steps.
SimTime in_first_turn(const Availability& availability, SimTime time) {
  const auto& at = availability.steps.at;
  SimTime sum = 0;
  for (std::size_t step = 0; step < at.size() && at[step] < time; ++step) {
    const SimTime end = step + 1 < at.size() ? std::min(time, at[step + 1]) : time;
    sum += availability.there(step) ? end - at[step] : 0;
  }
  return sum;
}

SimTime there_before(const Availability& availability, SimTime time) {
  const SimTime period = availability.steps.period;
  if (period == kNever) {
    return in_first_turn(availability, time);
  }
  return time / period * in_first_turn(availability, period) +
         in_first_turn(availability, time % period);
}

}  // namespace

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

SimTime time_there(const NodeAvailability& availability, SimTime from, SimTime until) {
  const auto& [times, start] = availability;
  return times == nullptr
             ? until - from
             : there_before(*times, plus(start, until)) - there_before(*times, plus(start, from));
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
