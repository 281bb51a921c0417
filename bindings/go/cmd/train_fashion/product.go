package main

// strided is the left-hand factor of a product: element (row m, segment s, term k) is data[m*row + s*segment + k*term]. Rows may overlap: a
// convolution reads its input as such a matrix without copying it, one segment per kernel row.
type strided struct {
	data               []float32
	row, segment, term int
}

// right is the right-hand factor: element (segment s, term k, column n) is data[s*segment + k*row + n].
type right struct {
	data            []float32
	segments, terms int
	segment, row    int
}

// productAdd adds the product to c, whose rows are cRow apart. Each element's sum runs over segments and terms in this order, so the bits
// depend on nothing but the arguments; the conversions keep products from being fused with sums, which would change them.
func productAdd(rows, columns int, a strided, b right, c []float32, cRow int) {
	n := 0
	for ; n+4 <= columns; n += 4 {
		m := 0
		for ; m+2 <= rows; m += 2 {
			tile(m, n, a, b, c[m*cRow+n:], cRow)
		}
		for ; m < rows; m++ {
			row(m, n, a, b, c[m*cRow+n:])
		}
	}
	for ; n < columns; n++ {
		for m := 0; m < rows; m++ {
			element(m, n, a, b, &c[m*cRow+n])
		}
	}
}

// tile does two rows of four columns, whose sums stay in registers.
func tile(m, n int, a strided, b right, c []float32, cRow int) {
	low, high := c[:4:4], c[cRow:cRow+4:cRow+4]
	p0, p1, p2, p3 := low[0], low[1], low[2], low[3]
	q0, q1, q2, q3 := high[0], high[1], high[2], high[3]
	for s := 0; s < b.segments; s++ {
		first := a.data[m*a.row+s*a.segment:]
		second := first[a.row:]
		factors := b.data[s*b.segment+n:]
		for k, i, j := 0, 0, 0; k < b.terms; k, i, j = k+1, i+a.term, j+b.row {
			x, y := first[i], second[i]
			f := factors[j : j+4 : j+4]
			p0 += float32(x * f[0])
			p1 += float32(x * f[1])
			p2 += float32(x * f[2])
			p3 += float32(x * f[3])
			q0 += float32(y * f[0])
			q1 += float32(y * f[1])
			q2 += float32(y * f[2])
			q3 += float32(y * f[3])
		}
	}
	low[0], low[1], low[2], low[3] = p0, p1, p2, p3
	high[0], high[1], high[2], high[3] = q0, q1, q2, q3
}

// row does one row of four columns.
func row(m, n int, a strided, b right, c []float32) {
	for column := 0; column < 4; column++ {
		element(m, n+column, a, b, &c[column])
	}
}

func element(m, n int, a strided, b right, c *float32) {
	sum := *c
	for s := 0; s < b.segments; s++ {
		left := a.data[m*a.row+s*a.segment:]
		factors := b.data[s*b.segment+n:]
		for k := 0; k < b.terms; k++ {
			sum += float32(left[k*a.term] * factors[k*b.row])
		}
	}
	*c = sum
}
