#include <sotto/study/plan/ranking.h>

#include <sotto/study/scenario/costs.h>
#include <sotto/study/units.h>

namespace sotto::study {

std::string Ranking::text(double figure) const {
  return money ? money_text(currency, figure) : duration_text(figure);
}

}  // namespace sotto::study
