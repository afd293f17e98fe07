// The facade of search: tasks, spaces, strategies, records, tuning, alternatives. Who needs a part
// alone includes its header.
#ifndef PRUNERC_SEARCH_SEARCH_H_
#define PRUNERC_SEARCH_SEARCH_H_

#include "search/algebra/alternatives.h"
#include "search/record/database.h"
#include "search/record/pool.h"
#include "search/space/space.h"
#include "search/space/task.h"
#include "search/strategy/strategies.h"
#include "search/tune/instant.h"
#include "search/tune/measurer.h"
#include "search/tune/replay.h"
#include "search/tune/tuner.h"

#endif  // PRUNERC_SEARCH_SEARCH_H_
