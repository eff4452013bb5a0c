// A graph's study, as `sotto topology --json` has it. Pure functions; thread-safe.
#pragma once

#include <sotto/base/ids.h>
#include <sotto/base/json.h>
#include <sotto/study/measure/graph_study.h>

namespace sotto::study {

/// All figures, with the mixing matrix of one round: "self_weights" and "weights" are null where a
/// graph has more than 20,000 edges. A limit or an α that is infinite is null.
Json graph_study_json(const GraphStudy& study, Round round);

}  // namespace sotto::study
