//! Tables for people: where the terminal is narrow, columns are left out or cut, and no word is split over lines.

use comfy_table::{ContentArrangement, Table as Grid, presets};

use super::plain;

/// Blanks between two columns.
const GAP: usize = 2;
/// A text that is cut keeps at least so many letters.
const SHORTEST: usize = 16;

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    title: &'static str,
    fit: Fit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// Shown whole, always.
    Whole,
    /// Cut at its end where there is no room.
    Cut,
    /// Left out where there is no room; the lowest number goes first.
    Spare(u8),
}

impl Column {
    pub const fn whole(title: &'static str) -> Column {
        let fit = Fit::Whole;
        Column { title, fit }
    }

    pub const fn cut(title: &'static str) -> Column {
        let fit = Fit::Cut;
        Column { title, fit }
    }

    pub const fn spare(title: &'static str, order: u8) -> Column {
        let fit = Fit::Spare(order);
        Column { title, fit }
    }
}

/// The lines of a table, and whether columns were left out of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Lines {
    pub lines: Vec<String>,
    pub left_out: bool,
}

/// How wide the terminal is; nothing where there is none, and tables are as wide as they are.
pub fn terminal_width() -> Option<usize> {
    Grid::new().width().map(usize::from)
}

/// Lays a table out for a terminal of this width.
pub fn lay_out(columns: &[Column], rows: &[Vec<String>], width: Option<usize>) -> Lines {
    let widest = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        let widest = cells.map(|cell| cell.chars().count()).max();
        widest.unwrap_or(0).max(columns[at].title.len())
    };
    let widths: Vec<usize> = (0..columns.len()).map(widest).collect();
    let least = |at: usize| match columns[at].fit {
        Fit::Cut => widths[at].min(SHORTEST),
        Fit::Whole | Fit::Spare(_) => widths[at],
    };
    let needed = |kept: &[usize]| {
        let gaps = GAP * kept.len().saturating_sub(1);
        kept.iter().map(|at| least(*at)).sum::<usize>() + gaps
    };
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    let width = width.unwrap_or(usize::MAX);
    while needed(&kept) > width {
        let spare = kept.iter().filter_map(|at| match columns[*at].fit {
            Fit::Spare(order) => Some((order, *at)),
            Fit::Whole | Fit::Cut => None,
        });
        let Some((_, first)) = spare.min() else { break };
        kept.retain(|at| *at != first);
    }
    let mut room = width.saturating_sub(needed(&kept));
    let mut grid = Grid::new();
    grid.load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    grid.set_header(kept.iter().map(|at| columns[*at].title.to_uppercase()));
    let mut limits = widths.clone();
    for at in kept.iter().filter(|at| columns[**at].fit == Fit::Cut) {
        let more = room.min(widths[*at] - least(*at));
        limits[*at] = least(*at) + more;
        room -= more;
    }
    for row in rows {
        let cell = |at: &usize| row.get(*at).map(|cell| shortened(cell, limits[*at]));
        grid.add_row(kept.iter().filter_map(cell));
    }
    for column in grid.column_iter_mut() {
        column.set_padding((0, u16::try_from(GAP).unwrap_or_default()));
    }
    let text = grid.to_string();
    Lines {
        lines: text
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect(),
        left_out: kept.len() < columns.len(),
    }
}

/// A text on one line, with a sign where its end is cut off.
fn shortened(text: &str, limit: usize) -> String {
    let text = plain(text).replace(['\n', '\t'], " ");
    if text.chars().count() <= limit {
        return text;
    }
    let kept: String = text.chars().take(limit.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 5] = [
        Column::whole("time"),
        Column::whole("tool"),
        Column::cut("what"),
        Column::spare("agent", 2),
        Column::spare("id", 1),
    ];

    fn rows() -> Vec<Vec<String>> {
        let row = [
            "2026-01-31T12:00:07Z",
            "hello",
            "a text that is rather long, and says little",
            "default",
            "01a1e2c7-8dfe-72d2-9af1-0149410c85f9",
        ];
        vec![row.map(str::to_owned).to_vec()]
    }

    #[test]
    fn a_table_is_as_wide_as_it_is_where_nobody_looks() {
        let laid = lay_out(&COLUMNS, &rows(), None);
        assert!(laid.lines[1].ends_with("0149410c85f9") && laid.lines[1].len() > 110);
        assert!(!laid.left_out);
    }

    #[test]
    fn in_eighty_columns_texts_are_cut_and_columns_left_out_but_no_word_is_split() {
        let laid = lay_out(&COLUMNS, &rows(), Some(80));
        assert_eq!(laid.lines.len(), 2, "{laid:?}");
        assert!(laid.left_out && !laid.lines[0].contains("ID"), "{laid:?}");
        assert!(laid.lines[1].starts_with("2026-01-31T12:00:07Z  hello  a text"));
        assert!(laid.lines[1].ends_with("default"), "{laid:?}");
        for width in 20..130 {
            let laid = lay_out(&COLUMNS, &rows(), Some(width));
            let fits = |line: &String| line.chars().count() <= width;
            assert!(
                width < 45 || laid.lines.iter().all(fits),
                "{width}: {laid:?}"
            );
            assert!(laid.lines[1].contains("2026-01-31T12:00:07Z"), "{laid:?}");
            let id = &rows()[0][4];
            assert!(!laid.lines[0].contains("ID") || laid.lines[1].contains(id));
        }
    }
}
